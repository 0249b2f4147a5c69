// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1,dce | filecheck %s

// A handle is the value that it leads to, also where control flow chooses one.
// CHECK-LABEL: func.func @chosen
// CHECK-SAME:  (%[[C:.+]]: tensor<i1>)
// CHECK-DAG:   %[[A:.+]] = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
// CHECK-DAG:   %[[B:.+]] = core.constant dense<[3.0, 4.0]> : tensor<2xf32>
// CHECK:       %[[Y:.+]] = core.if %[[C]] : tensor<i1> -> tensor<2xf32>
// CHECK-NEXT:    core.yield %[[A]]
// CHECK:         core.yield %[[B]]
// CHECK:       func.return %[[Y]]
func.func @chosen(%c : tensor<i1>) -> tensor<*xf32> {
  %a = tf1.VarHandleOp {dtype = #tf1.dtype<float>, shape = #tf1.shape<[2]>, value = #core.blob<"0x0000803F00000040">} : () -> !tf1.resource
  %b = tf1.VarHandleOp {dtype = #tf1.dtype<float>, shape = #tf1.shape<[2]>, shared_name = "b", value = #core.blob<"0x0000404000008040">} : () -> !tf1.resource
  %h = core.if %c : tensor<i1> -> !tf1.resource {
    core.yield %a : !tf1.resource
  } else {
    core.yield %b : !tf1.resource
  }
  %y = tf1.ReadVariableOp %h {dtype = #tf1.dtype<float>} : (!tf1.resource) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Rows by index; of batches, rows of the batch's own part.
// CHECK-LABEL: func.func @rows
// CHECK:       %[[V:.+]] = core.constant
// CHECK:       core.gather %[[V]], %i {{.*}} -> tensor<2x3x2x1xf32>
// CHECK:       %[[I:.+]] = core.reshape %i {{.*}} -> tensor<2x3x1xi32>
// CHECK:       core.gather_nd %[[V]], %[[I]] batch_dims 1 {{.*}} -> tensor<2x3x1xf32>
// CHECK:       core.constant dense<[2, 2, 1]> : tensor<3xi32>
func.func @rows(%i : tensor<2x3xi32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xi32>) {
  %v = tf1.VarHandleOp {dtype = #tf1.dtype<float>, shape = #tf1.shape<[2, 2, 1]>, value = #core.blob<"0x0000803F000000400000404000008040">} : () -> !tf1.resource
  %y = tf1.ResourceGather %v, %i {dtype = #tf1.dtype<float>, Tindices = #tf1.dtype<int32>} : (!tf1.resource, tensor<2x3xi32>) -> tensor<*xf32>
  %z = tf1.ResourceGather %v, %i {dtype = #tf1.dtype<float>, Tindices = #tf1.dtype<int32>, batch_dims = 1 : i64} : (!tf1.resource, tensor<2x3xi32>) -> tensor<*xf32>
  %s = tf1.VariableShape %v {out_type = #tf1.dtype<int32>} : (!tf1.resource) -> tensor<*xi32>
  func.return %y, %z, %s : tensor<*xf32>, tensor<*xf32>, tensor<*xi32>
}

// -----

// A variable of the first kind is its value, and is there from the beginning.
// CHECK-LABEL: func.func @reference
// CHECK-DAG:   core.constant dense<7> : tensor<i32>
// CHECK-DAG:   core.constant dense<true> : tensor<i1>
func.func @reference() -> (tensor<*xi32>, tensor<*xi1>) {
  %v = tf1.VariableV2 {dtype = #tf1.dtype<int32>, shape = #tf1.shape<[]>, value = #core.blob<"0x07000000">} : () -> tensor<i32>
  %t = tf1.IsVariableInitialized %v {dtype = #tf1.dtype<int32>} : (tensor<i32>) -> tensor<*xi1>
  %y = tf1.Identity %v {T = #tf1.dtype<int32>} : (tensor<i32>) -> tensor<*xi32>
  func.return %y, %t : tensor<*xi32>, tensor<*xi1>
}
