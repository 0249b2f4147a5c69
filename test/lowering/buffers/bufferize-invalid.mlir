// RUN: opt-tool %s --pass-pipeline=bufferize --split-input-file --verify-diagnostics | filecheck %s

// CHECK: 'lonely'{{.*}}is not in a kernel; run form-kernels before bufferize
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.neg %x : (tensor<4xf32>) -> tensor<4xf32> loc("lonely")
  func.return %a : tensor<4xf32>
}

// -----

// CHECK: collects scan outputs without a trip count
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<?x4xf32, #core.tensor<dims = [t, 4]>> {
  %s = core.loop cond %c : tensor<i1> -> tensor<?x4xf32, #core.tensor<dims = [t, 4]>> {
  ^bb0(%i : tensor<i64>):
    core.yield %c, %x : tensor<i1>, tensor<4xf32>
  } {count = "t"}
  func.return %s : tensor<?x4xf32, #core.tensor<dims = [t, 4]>>
}

// -----

// The largest integer is how exporters write that a loop has no limit.
// CHECK: collects scan outputs without a trip count
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<?x4xf32, #core.tensor<dims = [t, 4]>> {
  %n = core.constant dense<9223372036854775807> : tensor<i64>
  %s = core.loop trip %n : tensor<i64> cond %c : tensor<i1> -> tensor<?x4xf32, #core.tensor<dims = [t, 4]>> {
  ^bb0(%i : tensor<i64>):
    core.yield %c, %x : tensor<i1>, tensor<4xf32>
  } {count = "t"}
  func.return %s : tensor<?x4xf32, #core.tensor<dims = [t, 4]>>
}

// -----

// CHECK: 'gaps'{{.*}}is marked as a view, but its slice has gaps
func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {
  %y = core.kernel @gaps(%x) : (tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<8xf32>):
    %b = core.slice %a [0] [4] [2] : (tensor<8xf32>) -> tensor<4xf32>
    core.yield %b : tensor<4xf32>
  } {view} loc("gaps")
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: 'apart'{{.*}}is marked as a view, but its inputs cannot lie in its result
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = core.kernel @apart(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = core.concat %a axis 0 : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %b : tensor<4xf32>
  } {view} loc("apart")
  func.return %y : tensor<4xf32>
}
