// RUN: opt-tool %s --pass-pipeline=fold-constants --split-input-file | filecheck %s

// CHECK-LABEL: @arithmetic
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<[4.5, -2.0]> : tensor<2xf32>
// CHECK-NEXT:    func.return %[[C]]
func.func @arithmetic() -> tensor<2xf32> {
  %a = core.constant dense<[1.5, -1.0]> : tensor<2xf32>
  %b = core.constant dense<[3.0, 2.0]> : tensor<2xf32>
  %c = core.mul %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %c : tensor<2xf32>
}

// -----

// An integer sum wraps around.
// CHECK-LABEL: @wraps
// CHECK:         core.constant dense<-128> : tensor<i8>
func.func @wraps() -> tensor<i8> {
  %a = core.constant dense<127> : tensor<i8>
  %b = core.constant dense<1> : tensor<i8>
  %c = core.add %a, %b : (tensor<i8>, tensor<i8>) -> tensor<i8>
  func.return %c : tensor<i8>
}

// -----

// One rounding: in float32 steps 1e8 + 1 is 1e8, and the sum would be 0.
// CHECK-LABEL: @product
// CHECK:         core.constant dense<[{{\[}}1.0]]> : tensor<1x1xf32>
func.func @product() -> tensor<1x1xf32> {
  %a = core.constant dense<[[1.0e8, 1.0, -1.0e8]]> : tensor<1x3xf32>
  %b = core.constant dense<1.0> : tensor<3x1xf32>
  %c = core.matmul %a, %b : (tensor<1x3xf32>, tensor<3x1xf32>) -> tensor<1x1xf32>
  func.return %c : tensor<1x1xf32>
}

// -----

// A million elements from one: it stays.
// CHECK-LABEL: @growth
// CHECK:         core.broadcast
func.func @growth() -> tensor<1000x1000xf32> {
  %a = core.constant dense<1.0> : tensor<f32>
  %b = core.broadcast %a [1000, 1000] : (tensor<f32>) -> tensor<1000x1000xf32>
  func.return %b : tensor<1000x1000xf32>
}

// -----

// The index is out of range: that is an error where the op runs, if it does.
// CHECK-LABEL: @fails
// CHECK:         core.gather
func.func @fails() -> tensor<f32> {
  %a = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %i = core.constant dense<2> : tensor<i64>
  %b = core.gather %a, %i axis 0 : (tensor<2xf32>, tensor<i64>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// -----

// Numbers in from_dims are constants, symbols are not.
// CHECK-LABEL: @dims
// CHECK-DAG:     core.constant dense<[2, 3]> : tensor<2xi64>
// CHECK-DAG:     core.from_dims [n, 3]
func.func @dims(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> (tensor<2xi64>, tensor<2xi64>) {
  %a = core.from_dims [2, 3] shape [2] : tensor<2xi64>
  %b = core.from_dims [n, 3] shape [2] : tensor<2xi64>
  func.return %a, %b : tensor<2xi64>, tensor<2xi64>
}

// -----

// The limit is one of growth: a result as large as its operand is folded, whatever its size.
// CHECK-LABEL: @large
// CHECK-NOT:   core.neg
// CHECK:       func.return
func.func @large() -> tensor<20000xf32> {
  %a = core.constant dense<1.0> : tensor<20000xf32>
  %b = core.neg %a : (tensor<20000xf32>) -> tensor<20000xf32>
  func.return %b : tensor<20000xf32>
}

// -----

// All parts at once, also those that nobody uses.
// CHECK-LABEL: @split
// CHECK-NOT:     core.split
// CHECK:         %[[B:.*]] = core.constant dense<[3, 4]> : tensor<2xi64>
// CHECK:         func.return %[[B]]
func.func @split() -> tensor<2xi64> {
  %c = core.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %a, %b = core.split %c axis 0 sizes [2, 2] : (tensor<4xi64>) -> (tensor<2xi64>, tensor<2xi64>)
  func.return %b : tensor<2xi64>
}

// -----

// What a convolution reads is a constant, whatever its size and its way: here bytes become floats.
// CHECK-LABEL: @weights
// CHECK-NEXT:    %[[W:.*]] = core.constant #core.blob<uniform "0x0000803F", 147456> : tensor<64x64x3x3xf32>
// CHECK-NEXT:    core.conv %x, %[[W]]
func.func @weights(%x : tensor<1x64x8x8xf32>) -> tensor<1x64x6x6xf32> {
  %a = core.constant #core.blob<uniform "0x02", 36864> : tensor<3x3x64x64xi8>
  %b = core.cast %a to f32 : (tensor<3x3x64x64xi8>) -> tensor<3x3x64x64xf32>
  %t = core.transpose %b [3, 2, 0, 1] : (tensor<3x3x64x64xf32>) -> tensor<64x64x3x3xf32>
  %one = core.constant dense<-1.0> : tensor<f32>
  %w = core.add %t, %one : (tensor<64x64x3x3xf32>, tensor<f32>) -> tensor<64x64x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x64x8x8xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x6x6xf32>
  func.return %y : tensor<1x64x6x6xf32>
}

// -----

// Inside of a loop alike.
// CHECK-LABEL: @weights_in_a_loop
// CHECK:       ^bb0(%i: tensor<i64>, %v: tensor<200x200xf32>):
// CHECK-NEXT:    %[[W:.*]] = core.constant #core.blob<uniform "0x0000803F", 160000> : tensor<200x200xf32>
// CHECK-NEXT:    core.matmul %v, %[[W]]
func.func @weights_in_a_loop(%x : tensor<200x200xf32>, %n : tensor<i64>) -> tensor<200x200xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<200x200xf32> -> tensor<200x200xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<200x200xf32>):
    %a = core.constant #core.blob<uniform "0x01", 40000> : tensor<200x200xi8>
    %w = core.cast %a to f32 : (tensor<200x200xi8>) -> tensor<200x200xf32>
    %y = core.matmul %v, %w : (tensor<200x200xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
    core.yield %y : tensor<200x200xf32>
  }
  func.return %r : tensor<200x200xf32>
}

// -----

// Only a map reads it, which needs one element of each: no reason to keep a million.
// CHECK-LABEL: @read_once
// CHECK:         core.broadcast
// CHECK-NEXT:    core.add
func.func @read_once(%x : tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %a = core.constant dense<1.0> : tensor<f32>
  %b = core.broadcast %a [1000, 1000] : (tensor<f32>) -> tensor<1000x1000xf32>
  %c = core.add %x, %b : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  func.return %c : tensor<1000x1000xf32>
}

// -----

// Copies are made by the run, also of what a product or another op reads as a whole.
// CHECK-LABEL: @repeated
// CHECK:         core.broadcast
// CHECK-NEXT:    core.mul
// CHECK-NEXT:    core.reshape
// CHECK-NEXT:    core.matmul
func.func @repeated(%x : tensor<8x200xf32>) -> tensor<8x100xf32> {
  %a = core.constant dense<1.0> : tensor<50xf32>
  %b = core.broadcast %a [20, 20, 50] : (tensor<50xf32>) -> tensor<20x20x50xf32>
  %c = core.mul %b, %a : (tensor<20x20x50xf32>, tensor<50xf32>) -> tensor<20x20x50xf32>
  %w = core.reshape %c [200, 100] : (tensor<20x20x50xf32>) -> tensor<200x100xf32>
  %y = core.matmul %x, %w : (tensor<8x200xf32>, tensor<200x100xf32>) -> tensor<8x100xf32>
  func.return %y : tensor<8x100xf32>
}

// -----

// The scales of blocks of weights are copies, too, but the weights differ.
// CHECK-LABEL: @repeated_scales
// CHECK-NOT:     core.broadcast
// CHECK:         core.matmul
func.func @repeated_scales(%x : tensor<8x320xf32>) -> tensor<8x100xf32> {
  %q = core.constant #core.blob<uniform "0x01", 32000> : tensor<10x32x100xi8>
  %f = core.cast %q to f32 : (tensor<10x32x100xi8>) -> tensor<10x32x100xf32>
  %s = core.constant dense<0.5> : tensor<10x1x100xf32>
  %b = core.broadcast %s [10, 32, 100] : (tensor<10x1x100xf32>) -> tensor<10x32x100xf32>
  %c = core.mul %f, %b : (tensor<10x32x100xf32>, tensor<10x32x100xf32>) -> tensor<10x32x100xf32>
  %w = core.reshape %c [320, 100] : (tensor<10x32x100xf32>) -> tensor<320x100xf32>
  %y = core.matmul %x, %w : (tensor<8x320xf32>, tensor<320x100xf32>) -> tensor<8x100xf32>
  func.return %y : tensor<8x100xf32>
}

// -----

// A table of all pairs: 200 numbers and 200 numbers make 40,000 different ones.
// CHECK-LABEL: @outer_product
// CHECK-NOT:     core.broadcast
// CHECK:         core.matmul
func.func @outer_product(%x : tensor<8x200xf32>) -> tensor<8x200xf32> {
  %a = core.iota [200, 1] axis 0 : tensor<200x1xi64>
  %b = core.iota [1, 200] axis 1 : tensor<1x200xi64>
  %c = core.broadcast %a [200, 200] : (tensor<200x1xi64>) -> tensor<200x200xi64>
  %d = core.mul %c, %b : (tensor<200x200xi64>, tensor<1x200xi64>) -> tensor<200x200xi64>
  %w = core.cast %d to f32 : (tensor<200x200xi64>) -> tensor<200x200xf32>
  %y = core.matmul %x, %w : (tensor<8x200xf32>, tensor<200x200xf32>) -> tensor<8x200xf32>
  func.return %y : tensor<8x200xf32>
}

// -----

// A large step between small constants is no reason to compute the end of it in each run.
// CHECK-LABEL: @small_end
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<1000000.0> : tensor<f32>
// CHECK-NEXT:    func.return %[[C]]
func.func @small_end() -> tensor<f32> {
  %a = core.constant dense<1.0> : tensor<f32>
  %b = core.broadcast %a [1000, 1000] : (tensor<f32>) -> tensor<1000x1000xf32>
  %c = core.reduce sum %b [0, 1] : (tensor<1000x1000xf32>) -> tensor<f32>
  func.return %c : tensor<f32>
}

// -----

// The input decides: not even the part that does not need it is worth keeping.
// CHECK-LABEL: @not_constant
// CHECK:         core.broadcast
// CHECK-NEXT:    core.mul
// CHECK-NEXT:    core.matmul
func.func @not_constant(%x : tensor<200x200xf32>) -> tensor<200x200xf32> {
  %a = core.constant dense<1.0> : tensor<f32>
  %b = core.broadcast %a [200, 200] : (tensor<f32>) -> tensor<200x200xf32>
  %c = core.mul %b, %x : (tensor<200x200xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
  %d = core.matmul %x, %c : (tensor<200x200xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
  func.return %d : tensor<200x200xf32>
}

// -----

// More than 2^31 multiplications are left to the machine that runs the model.
// CHECK-LABEL: @too_much_work
// CHECK:         core.matmul
func.func @too_much_work() -> tensor<2048x2048xf32> {
  %a = core.constant #core.blob<uniform "0x0000803F", 16777216> : tensor<2048x2048xf32>
  %b = core.matmul %a, %a : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  func.return %b : tensor<2048x2048xf32>
}

// -----

// Nor is a range of 2 GB a weight because a reduction reads it.
// CHECK-LABEL: @vast_range
// CHECK:         core.iota
// CHECK-NEXT:    core.reduce
func.func @vast_range() -> tensor<i64> {
  %a = core.iota [1, 200000000] axis 1 : tensor<1x200000000xi64>
  %b = core.reduce sum %a [0, 1] : (tensor<1x200000000xi64>) -> tensor<i64>
  func.return %b : tensor<i64>
}

// -----

// Nor what grows little by little from what is small: the last step alone would do.
// CHECK-LABEL: @vast_steps
// CHECK:         core.constant
// CHECK-NEXT:    core.concat
// CHECK-NEXT:    core.reduce
func.func @vast_steps() -> tensor<i64> {
  %a = core.iota [2000000] axis 0 : tensor<2000000xi64>
  %b = core.reshape %a [1, 2000000] : (tensor<2000000xi64>) -> tensor<1x2000000xi64>
  %c = core.concat %b, %b, %b, %b, %b, %b axis 0 : (tensor<1x2000000xi64>, tensor<1x2000000xi64>, tensor<1x2000000xi64>, tensor<1x2000000xi64>, tensor<1x2000000xi64>, tensor<1x2000000xi64>) -> tensor<6x2000000xi64>
  %d = core.reduce sum %c [0, 1] : (tensor<6x2000000xi64>) -> tensor<i64>
  func.return %d : tensor<i64>
}
