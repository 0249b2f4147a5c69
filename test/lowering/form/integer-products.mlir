// RUN: opt-tool %s --for-target=x86-64-v4 --disable=pack-products --compile-to=kernels | filecheck %s
// RUN: opt-tool %s --for-target=c99 --compile-to=buffer | filecheck %s --check-prefix=PLAIN
// RUN: opt-tool %s --for-target=native --compile-to=c --check-each

// Quantized operators reach kernels as products of bytes in i32, their weights in the bytes of the
// model; the zero point that stands for padding is subtracted where an element is read.

// CHECK-DAG: core.constant {{.*}} : tensor<3x2x2xi8>
// CHECK-DAG: core.constant {{.*}} : tensor<5x4xi8>
// CHECK:     core.kernel @conv_0
// CHECK:       core.conv %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} strides [1] dilations [1] pads [1] [0] groups 1 in i32 : (tensor<1x2x5xui8>, tensor<3x2x2xi8>, tensor<3xi32>, tensor<ui8>, tensor<i8>) -> tensor<1x3x5xi32>
// CHECK:     core.kernel @matmul_0
// CHECK:       core.matmul %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} in i32 : (tensor<3x5xui8>, tensor<5x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<3x4xi32>
// CHECK:     tiled_matmul

// PLAIN:     buffer.func @conv_0
// PLAIN:       buffer.load %{{.*}} : !buffer.ref<[1, 2, 5] x ui8> -> i8
// PLAIN-NEXT:  arith.extui %{{.*}} : i8 to i32
// PLAIN:       arith.subi
// PLAIN:       arith.muli %{{.*}} : i32
// PLAIN-NEXT:  arith.addi %{{.*}} : i32
// PLAIN:     buffer.weight {{.*}} x i8>
func.func @main(%x : tensor<1x2x5xui8> {core.name = "x"}) -> (tensor<*xui8> {core.name = "y"}) {
  %xs = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %xz = onnx.initializer #core.blob<"0x07"> : tensor<ui8>
  %ys = onnx.initializer #core.blob<"0x9A99993E"> : tensor<f32>
  %w = onnx.initializer #core.blob<"0x0102FDFC0506F708090A0BFF"> : tensor<3x2x2xi8>
  %ws = onnx.initializer #core.blob<"0x0000803E"> : tensor<f32>
  %wz = onnx.initializer #core.blob<"0x00"> : tensor<i8>
  %b = onnx.initializer #core.blob<"0x01000000FEFFFFFF03000000"> : tensor<3xi32>
  %m = onnx.initializer #core.blob<"0x0102FDFC0506F708090A0BFF0C0D0E0F101112F3"> : tensor<5x4xi8>
  %y = onnx.QLinearConv_10 %x, %xs, %xz, %w, %ws, %wz, %ys, %xz, %b {pads = [1, 0]} : (tensor<1x2x5xui8>, tensor<f32>, tensor<ui8>, tensor<3x2x2xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>, tensor<3xi32>) -> tensor<*xui8>
  %z = onnx.QLinearMatMul_21 %y, %xs, %xz, %m, %ws, %wz, %ys, %xz : (tensor<*xui8>, tensor<f32>, tensor<ui8>, tensor<5x4xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
  func.return %z : tensor<*xui8>
}
