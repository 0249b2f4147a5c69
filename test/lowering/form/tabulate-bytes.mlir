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

// -----

// A constant table whose index is computed of a byte is one for the byte itself, whatever its
// entries are. Of signed bytes from 0 on, the last half of the new table is the first half.
// CHECK-LABEL: @index
// CHECK:         %[[BYTES:.+]] = core.cast %x to ui8
// CHECK-NEXT:    %[[TABLE:.+]] = core.constant dense<[81, 84, {{.*}}, 78]> : tensor<256xi32>
// CHECK-NEXT:    core.gather %[[TABLE]], %[[BYTES]] axis 0 {inside}
func.func @index(%x: tensor<4x64xi8>) -> tensor<4x64xi32> {
  %table = core.constant dense<[0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 82, 85, 88, 91, 94, 97, 100, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 68, 71, 74, 77, 80, 83, 86, 89, 92, 95, 98, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 82, 85, 88, 91, 94, 97, 100, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 68, 71, 74, 77, 80, 83, 86, 89, 92, 95, 98, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58]> : tensor<256xi32>
  %least = core.constant dense<-128> : tensor<i64>
  %a = core.cast %x to i64 : (tensor<4x64xi8>) -> tensor<4x64xi64>
  %b = core.sub %a, %least : (tensor<4x64xi64>, tensor<i64>) -> tensor<4x64xi64>
  %y = core.gather %table, %b axis 0 : (tensor<256xi32>, tensor<4x64xi64>) -> tensor<4x64xi32>
  func.return %y : tensor<4x64xi32>
}

// -----

// A negative index counts from the end: that of -1, the last byte, is the last one.
// CHECK-LABEL: @negative
// CHECK:         core.constant dense<[0, 3, 6, {{.*}}, 55, 58]> : tensor<256xi8>
// CHECK-NEXT:    core.gather
func.func @negative(%x: tensor<4x64xi8>) -> tensor<4x64xi8> {
  %table = core.constant dense<[0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 82, 85, 88, 91, 94, 97, 100, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 68, 71, 74, 77, 80, 83, 86, 89, 92, 95, 98, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 82, 85, 88, 91, 94, 97, 100, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 68, 71, 74, 77, 80, 83, 86, 89, 92, 95, 98, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58]> : tensor<256xi8>
  %a = core.cast %x to i32 : (tensor<4x64xi8>) -> tensor<4x64xi32>
  %y = core.gather %table, %a axis 0 : (tensor<256xi8>, tensor<4x64xi32>) -> tensor<4x64xi8>
  func.return %y : tensor<4x64xi8>
}

// -----

// Some bytes have no entry, rows of a table are no elements, and an index of two bytes is not of
// one.
// CHECK-LABEL: @no_entry
// CHECK-NOT:     tensor<256x
func.func @no_entry(%x: tensor<4x64xi8>, %z: tensor<4x64xi8>) -> (tensor<4x64xi8>, tensor<4x64x2xi8>, tensor<4x64xi8>) {
  %table = core.constant dense<1> : tensor<130xi8>
  %rows = core.constant dense<1> : tensor<130x2xi8>
  %mask = core.constant dense<15> : tensor<i64>
  %a = core.cast %x to i64 : (tensor<4x64xi8>) -> tensor<4x64xi64>
  %b = core.cast %z to i64 : (tensor<4x64xi8>) -> tensor<4x64xi64>
  %least = core.constant dense<-3> : tensor<i64>
  %c = core.sub %a, %least : (tensor<4x64xi64>, tensor<i64>) -> tensor<4x64xi64>
  %u = core.gather %table, %c axis 0 : (tensor<130xi8>, tensor<4x64xi64>) -> tensor<4x64xi8>
  %v = core.gather %rows, %a axis 0 : (tensor<130x2xi8>, tensor<4x64xi64>) -> tensor<4x64x2xi8>
  %d = core.sub %a, %b : (tensor<4x64xi64>, tensor<4x64xi64>) -> tensor<4x64xi64>
  %e = core.and %d, %mask : (tensor<4x64xi64>, tensor<i64>) -> tensor<4x64xi64>
  %w = core.gather %table, %e axis 0 : (tensor<130xi8>, tensor<4x64xi64>) -> tensor<4x64xi8>
  func.return %u, %v, %w : tensor<4x64xi8>, tensor<4x64x2xi8>, tensor<4x64xi8>
}
