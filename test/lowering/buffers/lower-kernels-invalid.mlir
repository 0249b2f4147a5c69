// RUN: opt-tool %s --pass-pipeline=lower-kernels --split-input-file --verify-diagnostics | filecheck %s

// CHECK: uses the symbols ['n'], which it does not declare
buffer.kernel @undeclared {
^bb0(%x : tensor<?xf32, #core.tensor<dims = [n]>>):
  core.yield %x : tensor<?xf32, #core.tensor<dims = [n]>>
} {symbols = ["m"]}

// -----

// CHECK: there is no strategy 'wishful'; there are
buffer.kernel @unknown {
^bb0(%x : tensor<4xf32>):
  core.yield %x : tensor<4xf32>
} {schedule = #core.schedule<wishful>}

// -----

// CHECK: 'late'{{.*}}is the second anchor of its kernel; run form-kernels
buffer.kernel @anchors {
^bb0(%x : tensor<4x4xf32>):
  %y = core.softmax %x axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = core.softmax %y axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("late")
  core.yield %z : tensor<4x4xf32>
}
