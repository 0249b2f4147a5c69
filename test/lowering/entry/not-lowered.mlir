// RUN: not opt-tool %s --pass-pipeline='form-kernels,bufferize,parallelize' 2>&1 | filecheck %s --check-prefix=PARALLELIZE
// RUN: not opt-tool %s --pass-pipeline='form-kernels,bufferize,compute-in-place' 2>&1 | filecheck %s --check-prefix=IN-PLACE
// RUN: not opt-tool %s --pass-pipeline='form-kernels,bufferize,merge-functions' 2>&1 | filecheck %s --check-prefix=MERGE

// Passes that look into the loops of kernels say what has to run before them.
// PARALLELIZE: op 'buffer.kernel': no loops yet (@exp_0, @matmul_0); run lower-kernels before parallelize
// IN-PLACE: op 'buffer.kernel': no loops yet (@exp_0, @matmul_0); run lower-kernels before compute-in-place
// MERGE: op 'buffer.kernel': no loops yet (@exp_0, @matmul_0); run lower-kernels before merge-functions
func.func @main(%x : tensor<4x3xf32>, %w : tensor<3x2xf32>) -> tensor<4x2xf32> {
  %e = core.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = core.matmul %e, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}
