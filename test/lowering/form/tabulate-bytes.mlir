// RUN: opt-tool %s --for-target=x86-64-v3 -p tabulate-bytes --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=c99 -p tabulate-bytes --split-input-file | filecheck %s --check-prefix=ALONE

// Bytes with signs are numbers from 0 to 255: those below zero come last. Where x is -1, and so the
// last but one, the result is 27.
// CHECK-LABEL: @signs
// CHECK:         %[[BYTES:.+]] = core.cast %x to ui8
// CHECK-NEXT:    %[[TABLE:.+]] = core.constant dense<[50, 73, {{.*}}, 27]> : tensor<256xui8>
// CHECK-NEXT:    core.gather %[[TABLE]], %[[BYTES]] axis 0 {inside}
func.func @signs(%x: tensor<4x64xi8>) -> tensor<4x64xui8> {
  %s = core.constant dense<100.0> : tensor<f32>
  %a = core.cast %x to f32 : (tensor<4x64xi8>) -> tensor<4x64xf32>
  %b = core.sigmoid %a : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %c = core.mul %b, %s : (tensor<4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %d = core.round %c : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %y = core.cast %d to ui8 {fits} : (tensor<4x64xf32>) -> tensor<4x64xui8>
  func.return %y : tensor<4x64xui8>
}

// -----

// Bytes between functions are looked through, from both sides: x + sigmoid(x) is one table.
// CHECK-LABEL: @twice
// CHECK:         %[[TABLE:.+]] = core.constant dense<[1, 2, 3, 4, 5,
// CHECK-NEXT:    %[[Y:.+]] = core.gather %[[TABLE]], %x axis 0 {inside}
// CHECK-NEXT:    return %[[Y]]
func.func @twice(%x: tensor<256xui8>) -> tensor<256xui8> {
  %most = core.constant dense<255.0> : tensor<f32>
  %a = core.cast %x to f32 : (tensor<256xui8>) -> tensor<256xf32>
  %b = core.sigmoid %a : (tensor<256xf32>) -> tensor<256xf32>
  %c = core.ceil %b : (tensor<256xf32>) -> tensor<256xf32>
  %d = core.cast %c to ui8 {fits} : (tensor<256xf32>) -> tensor<256xui8>
  %e = core.cast %d to f32 : (tensor<256xui8>) -> tensor<256xf32>
  %f = core.add %e, %a : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %g = core.min %f, %most : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %y = core.cast %g to ui8 {fits} : (tensor<256xf32>) -> tensor<256xui8>
  func.return %y : tensor<256xui8>
}

// -----

// Two tensors of bytes, other numbers in each row, floats before, and fewer elements than bytes.
// CHECK-LABEL: @others
// CHECK-NOT:     core.gather
// ALONE-LABEL: @others
// ALONE-NOT:     core.gather
func.func @others(%x: tensor<4x64xui8>, %z: tensor<4x64xui8>, %f: tensor<4x64xf32>, %s: tensor<255xui8>) -> (tensor<4x64xui8>, tensor<4x64xui8>, tensor<4x64xui8>, tensor<255xui8>) {
  %rows = core.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %a = core.cast %x to f32 : (tensor<4x64xui8>) -> tensor<4x64xf32>
  %b = core.sigmoid %a : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %c = core.cast %z to f32 : (tensor<4x64xui8>) -> tensor<4x64xf32>
  %d = core.mul %b, %c : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %u = core.cast %d to ui8 {fits} : (tensor<4x64xf32>) -> tensor<4x64xui8>
  %e = core.mul %b, %rows : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  %v = core.cast %e to ui8 {fits} : (tensor<4x64xf32>) -> tensor<4x64xui8>
  %g = core.sigmoid %f : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %w = core.cast %g to ui8 {fits} : (tensor<4x64xf32>) -> tensor<4x64xui8>
  %h = core.cast %s to f32 : (tensor<255xui8>) -> tensor<255xf32>
  %i = core.sigmoid %h : (tensor<255xf32>) -> tensor<255xf32>
  %y = core.cast %i to ui8 {fits} : (tensor<255xf32>) -> tensor<255xui8>
  func.return %u, %v, %w, %y : tensor<4x64xui8>, tensor<4x64xui8>, tensor<4x64xui8>, tensor<255xui8>
}

// -----

// A few ops are faster in vectors, but not one by one.
// CHECK-LABEL: @few
// CHECK-NOT:     core.gather
// ALONE-LABEL: @few
// ALONE:         core.gather
func.func @few(%x: tensor<256xui8>) -> tensor<256xui8> {
  %s = core.constant dense<0.3> : tensor<f32>
  %a = core.cast %x to f32 : (tensor<256xui8>) -> tensor<256xf32>
  %b = core.mul %a, %s : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %y = core.cast %b to ui8 {fits} : (tensor<256xf32>) -> tensor<256xui8>
  func.return %y : tensor<256xui8>
}
