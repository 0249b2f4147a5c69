// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1 | filecheck %s

// What a loop carries keeps its type; a value that the body hands on is not carried.
// CHECK-LABEL: func.func @keeps
// CHECK:       core.loop cond %{{.*}} : tensor<i1> carry %{{.*}} : tensor<2xf32> -> tensor<2xf32>
// CHECK-NEXT:  ^bb0(%{{.*}}: tensor<i64>, [[V:%[a-z0-9]+]]: tensor<2xf32>):
// CHECK-NEXT:    core.mul [[V]], %y
func.func @keeps(%x : tensor<2xf32>, %y : tensor<2xf32>, %c : tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) {
  %r, %s = core.loop cond %c : tensor<i1> carry %x, %y : tensor<2xf32>, tensor<2xf32> -> tensor<*xf32>, tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %a : tensor<*xf32>, %b : tensor<*xf32>):
    %m = tf1.Mul %a, %b {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %k = tf1.Identity %b {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %m, %k : tensor<i1>, tensor<*xf32>, tensor<*xf32>
  }
  func.return %r, %s : tensor<*xf32>, tensor<*xf32>
}

// -----

// A dimension that an iteration changes becomes a symbol; the other one does not.
// CHECK-LABEL: func.func @grows
// CHECK:       core.loop cond %{{.*}} carry %x : tensor<2x3xf32> -> tensor<?x3xf32, #core.tensor<dims = [[[R:u[0-9]+]], 3]>>
// CHECK-NEXT:  ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<?x3xf32, #core.tensor<dims = [[[S:u[0-9]+]], 3]>>):
// CHECK:         core.yield %{{.*}} : tensor<i1>, tensor<?x3xf32, #core.tensor<dims = [[[S]] + 2, 3]>>
// CHECK:       {carried_symbols = ["[[S]]"], result_symbols = ["[[R]]"]}
func.func @grows(%x : tensor<2x3xf32>, %c : tensor<i1>) -> tensor<*xf32> {
  %axis = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %r = core.loop cond %c : tensor<i1> carry %x : tensor<2x3xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %a : tensor<*xf32>):
    %m = tf1.ConcatV2 %a, %x, %axis {N = 2 : i64, T = #tf1.dtype<float>, Tidx = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<*xf32>
    core.yield %c, %m : tensor<i1>, tensor<*xf32>
  }
  func.return %r : tensor<*xf32>
}

// -----

// A branch that is known is not a branch: the other one may be anything.
// CHECK-LABEL: func.func @known
// CHECK-NOT:   core.if
// CHECK:       [[R:%.+]] = core.neg %x
// CHECK-NEXT:  func.return [[R]]
func.func @known(%x : tensor<2xf32>) -> tensor<*xf32> {
  %c = tf1.Const {dtype = #tf1.dtype<bool>, value = #core.blob<"0x01">} : () -> tensor<i1>
  %r = core.if %c : tensor<i1> -> tensor<*xf32> {
    %n = tf1.Neg %x {T = #tf1.dtype<float>} : (tensor<2xf32>) -> tensor<*xf32>
    core.yield %n : tensor<*xf32>
  } else {
    %n = tf1.MatrixInverse %x {T = #tf1.dtype<float>} : (tensor<2xf32>) -> tensor<*xf32>
    core.yield %n : tensor<*xf32>
  }
  func.return %r : tensor<*xf32>
}

// -----

// A loop whose condition is false at once gives the initial values.
// CHECK-LABEL: func.func @never
// CHECK-NOT:   core.loop
// CHECK:       func.return %x
func.func @never(%x : tensor<2xf32>) -> tensor<*xf32> {
  %c = tf1.Const {dtype = #tf1.dtype<bool>, value = #core.blob<"0x00">} : () -> tensor<i1>
  %r = core.loop cond %c : tensor<i1> carry %x : tensor<2xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %a : tensor<*xf32>):
    %m = tf1.MatrixInverse %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %m : tensor<i1>, tensor<*xf32>
  }
  func.return %r : tensor<*xf32>
}

// -----

// Branches of different size, and a result that is the same outer value in both.
// CHECK-LABEL: func.func @sizes
// CHECK:       [[R:%.+]] = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [[[S:u[0-9]+]]]>> {
// CHECK-NEXT:    core.yield %x : tensor<2xf32>
// CHECK:         core.yield %y : tensor<3xf32>
// CHECK:       {result_symbols = ["[[S]]"]}
// CHECK-NEXT:  func.return [[R]], %x
func.func @sizes(%x : tensor<2xf32>, %y : tensor<3xf32>, %c : tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) {
  %r, %s = core.if %c : tensor<i1> -> tensor<*xf32>, tensor<*xf32> {
    core.yield %x, %x : tensor<2xf32>, tensor<2xf32>
  } else {
    %k = tf1.Identity %x {T = #tf1.dtype<float>} : (tensor<2xf32>) -> tensor<*xf32>
    core.yield %y, %k : tensor<3xf32>, tensor<*xf32>
  }
  func.return %r, %s : tensor<*xf32>, tensor<*xf32>
}

// -----

// What counts as true: a scalar that is not zero, and any other tensor that has elements.
// CHECK-LABEL: func.func @truth
// CHECK-NEXT:    %[[ZERO:.*]] = core.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %b = core.compare ne %n, %[[ZERO]]
// CHECK-NEXT:    %[[SIZE:.*]] = core.from_dims [n * 2]
// CHECK-NEXT:    %[[NONE:.*]] = core.constant dense<0>
// CHECK-NEXT:    %c = core.compare gt %[[SIZE]], %[[NONE]]
// CHECK:         func.return %p, %b, %c, %x
func.func @truth(%p : tensor<i1>, %n : tensor<i32>, %v : tensor<2x?xi1, #core.tensor<dims = [2, n]>>, %w : tensor<1xi1>, %x : tensor<f32>) -> (tensor<*xi1>, tensor<*xi1>, tensor<*xi1>, tensor<*xf32>) {
  %a = tf1.ToBool %p {T = #tf1.dtype<bool>} : (tensor<i1>) -> tensor<*xi1>
  %b = tf1.ToBool %n {T = #tf1.dtype<int32>} : (tensor<i32>) -> tensor<*xi1>
  %c = tf1.ToBool %v {T = #tf1.dtype<bool>} : (tensor<2x?xi1, #core.tensor<dims = [2, n]>>) -> tensor<*xi1>
  %d = tf1.ToBool %w {T = #tf1.dtype<bool>} : (tensor<1xi1>) -> tensor<*xi1>
  %r = core.if %d : tensor<*xi1> -> tensor<*xf32> {
    core.yield %x : tensor<f32>
  } else {
    %y = tf1.Neg %x {T = #tf1.dtype<float>} : (tensor<f32>) -> tensor<*xf32>
    core.yield %y : tensor<*xf32>
  }
  func.return %a, %b, %c, %r : tensor<*xi1>, tensor<*xi1>, tensor<*xi1>, tensor<*xf32>
}

// -----

// What nobody looks at takes the type of the other branch; a length that is known only there is
// zero, one that is known outside stays.
// CHECK-LABEL: func.func @anything
// CHECK-NOT:     ub.poison
// CHECK:         core.if %c : tensor<i1> -> tensor<f32>, tensor<?xf32, {{.*}}>, tensor<?xi1, #core.tensor<dims = [n]>> {
// CHECK:           core.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<?xf32, #core.tensor<dims = [{{u[0-9]+}}]>>, tensor<?xi1, #core.tensor<dims = [n]>>
// CHECK:         } else {
// CHECK:           core.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<0xf32>, tensor<?xi1, #core.tensor<dims = [n]>>
// CHECK:         func.return %{{.*}}, %{{.*}}, %{{.*}}, %v
func.func @anything(%x : tensor<f32>, %v : tensor<?xf32, #core.tensor<dims = [n]>>, %c : tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xi1>, tensor<*xf32>) {
  %r, %s, %t, %u = core.if %c : tensor<i1> -> tensor<*xf32>, tensor<*xf32>, tensor<*xi1>, tensor<*xf32> {
    %a = ub.poison : tensor<*xf32>
    %small = tf1.Less %v, %x {T = #tf1.dtype<float>} : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<f32>) -> tensor<*xi1>
    %where = tf1.Where %small {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> tensor<*xi64>
    %taken = tf1.GatherNd %v, %where {Tparams = #tf1.dtype<float>, Tindices = #tf1.dtype<int64>} : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<*xi64>) -> tensor<*xf32>
    core.yield %a, %taken, %small, %v : tensor<*xf32>, tensor<*xf32>, tensor<*xi1>, tensor<?xf32, #core.tensor<dims = [n]>>
  } else {
    %a = ub.poison : tensor<*xf32>
    %b = ub.poison : tensor<*xi1>
    %neg = tf1.Neg %x {T = #tf1.dtype<float>} : (tensor<f32>) -> tensor<*xf32>
    core.yield %neg, %a, %b, %a : tensor<*xf32>, tensor<*xf32>, tensor<*xi1>, tensor<*xf32>
  }
  func.return %r, %s, %t, %u : tensor<*xf32>, tensor<*xf32>, tensor<*xi1>, tensor<*xf32>
}

// -----

// The same where the branch is known: what comes after it has to have a type.
// CHECK-LABEL: func.func @known_anything
// CHECK-NOT:     core.if %yes
// CHECK-NOT:     ub.poison
// CHECK:         core.if %c
// CHECK:           core.constant dense<[-0.0, -0.0]> : tensor<2xf32>
func.func @known_anything(%x : tensor<2xf32>, %c : tensor<i1>) -> tensor<*xf32> {
  %yes = tf1.Const {dtype = #tf1.dtype<bool>, value = #core.blob<"0x01">} : () -> tensor<i1>
  %r = core.if %yes : tensor<i1> -> tensor<*xf32> {
    %a = ub.poison : tensor<*xf32>
    core.yield %a : tensor<*xf32>
  } else {
    %n = tf1.Abs %x {T = #tf1.dtype<float>} : (tensor<2xf32>) -> tensor<*xf32>
    core.yield %n : tensor<*xf32>
  }
  %s = core.if %c : tensor<i1> -> tensor<*xf32> {
    %n = tf1.Neg %r {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
    core.yield %n : tensor<*xf32>
  } else {
    core.yield %x : tensor<2xf32>
  }
  func.return %s : tensor<*xf32>
}

// -----

// An array that only one branch has, and that was never written there.
// CHECK-LABEL: func.func @array_or_anything
// CHECK-NOT:     ub.poison
// CHECK:         core.if %c : tensor<i1> -> tensor<2x3xf32>
// CHECK-NOT:     ub.poison
func.func @array_or_anything(%k : tensor<i32>, %c : tensor<i1>) -> tensor<*xf32> {
  %r = core.if %c : tensor<i1> -> tensor<*xf32> {
    %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
    %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>, element_shape = #tf1.shape<[3]>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
    core.yield %f : tensor<*xf32>
  } else {
    %a = ub.poison : tensor<*xf32>
    core.yield %a : tensor<*xf32>
  }
  func.return %r : tensor<*xf32>
}
