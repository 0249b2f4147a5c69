// RUN: opt-tool %s --precision=int8 --ranges=%S/quantize-layers-by-range.json --pass-pipeline=quantize-layers | filecheck %s
// RUN: opt-tool %s --precision=auto --ranges=%S/quantize-layers-by-range.json --pass-pipeline=quantize-layers | filecheck %s --check-prefix=AUTO
// RUN: opt-tool %s --precision=int8 --ranges=%S/quantize-layers-by-range.json --pass-pipeline=quantize-layers,fold-quantize,fuse-quantized | filecheck %s --check-prefix=BYTES

// From -1 to 1.55 is a step of 0.01 and the zero point 100; the largest of windows is chosen from
// bytes, and the bias is a multiple of the scale of sums. The second layer stays, where `auto` goes
// by the file.
// CHECK-LABEL: @main
// CHECK-NEXT:    %[[I:.*]] = core.constant dense<100.0> : tensor<f32>
// CHECK-NEXT:    %[[X:.*]] = core.mul %x, %[[I]]
// CHECK-NEXT:    %[[R:.*]] = core.round %[[X]]
// CHECK:         %[[Z:.*]] = core.constant dense<100.0> : tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = core.add %[[R]], %[[Z]]
// CHECK:         %[[Q:.*]] = core.cast %{{.*}} to ui8
// CHECK-NEXT:    %[[F:.*]] = core.cast %[[Q]] to f32
// CHECK:         %[[S:.*]] = core.sub %[[F]], %{{.*}}
// CHECK:         %[[D:.*]] = core.mul %[[S]], %{{.*}} : (tensor<1x2x4x4xf32>
// CHECK-NEXT:    %[[P:.*]] = core.pool max %[[D]]
// CHECK:         %[[V:.*]] = core.constant dense<{{.*}}127{{.*}}> : tensor<1x2x1x1xi8>
// CHECK:         %[[W:.*]] = core.mul %{{.*}} (tensor<1x2x1x1xf32>, tensor<1x1x1x1xf32>)
// CHECK:         core.conv %[[P]], %[[W]], %{{.*}}
// CHECK:         to ui8
// AUTO-LABEL: @main
// AUTO-COUNT-1:  to ui8
// AUTO-NOT:      to ui8
// BYTES-LABEL: @main
// BYTES:         core.pool max {{.*}}xui8>
// BYTES:         core.conv {{.*}} in i32
func.func @main(%x : tensor<1x2x4x4xf32>) -> tensor<1x1x2x2xf32> {
  %p = core.pool max %x kernel [2, 2] strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %w = core.constant dense<[[[[0.5]], [[0.25]]]]> : tensor<1x2x1x1xf32>
  %b = core.constant dense<0.3> : tensor<1xf32>
  %c = core.conv %p, %w, %b strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x2x2x2xf32>, tensor<1x2x1x1xf32>, tensor<1xf32>) -> tensor<1x1x2x2xf32>
  %v = core.constant dense<0.5> : tensor<1x1x1x1xf32>
  %y = core.conv %c, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  func.return %y : tensor<1x1x2x2xf32>
}
