// RUN: opt-tool %s --for-target x86-64-v3 --pass-pipeline=pad-columns --split-input-file | filecheck %s

// Seven columns behind 32, four and three single ones: eight are as fast.
// CHECK-LABEL: @seven
// CHECK:         %[[W:.+]] = core.constant {{.*}} : tensor<128x40xf32>
// CHECK-NEXT:    %[[P:.+]] = core.matmul %x, %[[W]] : (tensor<2x6x128xf32>, tensor<128x40xf32>) -> tensor<2x6x40xf32>
// CHECK-NEXT:    %[[Y:.+]] = core.slice %[[P]] [0, 0, 0] [2, 6, 39] [1, 1, 1]
// CHECK-NEXT:    func.return %[[Y]]
func.func @seven(%x: tensor<2x6x128xf32>) -> tensor<2x6x39xf32> {
  %w = core.constant dense<1.0> : tensor<128x39xf32>
  %y = core.matmul %x, %w : (tensor<2x6x128xf32>, tensor<128x39xf32>) -> tensor<2x6x39xf32>
  func.return %y : tensor<2x6x39xf32>
}

// -----

// One narrow tile, of four columns or of one, takes no longer than a vector.
// CHECK-LABEL: @one
// CHECK-NOT:     core.slice
func.func @one(%x: tensor<6x128xf32>) -> (tensor<6x36xf32>, tensor<6x33xf32>) {
  %v = core.constant dense<1.0> : tensor<128x36xf32>
  %w = core.constant dense<1.0> : tensor<128x33xf32>
  %y = core.matmul %x, %v : (tensor<6x128xf32>, tensor<128x36xf32>) -> tensor<6x36xf32>
  %z = core.matmul %x, %w : (tensor<6x128xf32>, tensor<128x33xf32>) -> tensor<6x33xf32>
  func.return %y, %z : tensor<6x36xf32>, tensor<6x33xf32>
}

// -----

// A matrix that only a run knows is copied, for 32 rows and more.
// CHECK-LABEL: @computed
// CHECK:         %[[W:.+]] = core.pad constant %w [0, 0, 0] [0, 0, 3] : {{.*}} -> tensor<2x128x40xf32>
// CHECK-NEXT:    %[[P:.+]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    core.slice %[[P]] [0, 0, 0] [2, 32, 37] [1, 1, 1]
func.func @computed(%x: tensor<2x32x128xf32>, %w: tensor<2x128x37xf32>) -> tensor<2x32x37xf32> {
  %y = core.matmul %x, %w : (tensor<2x32x128xf32>, tensor<2x128x37xf32>) -> tensor<2x32x37xf32>
  func.return %y : tensor<2x32x37xf32>
}

// -----

// Few rows, few terms, few and many columns, a matrix with another use and a computed one stay.
// CHECK-LABEL: @others
// CHECK-NOT:     core.slice
func.func @others(%x: tensor<6x128xf32>, %r: tensor<5x128xf32>, %t: tensor<6x127xf32>, %m: tensor<128x39xf32>) -> (tensor<5x39xf32>, tensor<6x39xf32>, tensor<6x31xf32>, tensor<6x519xf32>, tensor<6x39xf32>, tensor<128x39xf32>, tensor<6x39xf32>) {
  %a = core.constant dense<1.0> : tensor<128x39xf32>
  %b = core.constant dense<1.0> : tensor<127x39xf32>
  %c = core.constant dense<1.0> : tensor<128x31xf32>
  %d = core.constant dense<1.0> : tensor<128x519xf32>
  %e = core.constant dense<2.0> : tensor<128x39xf32>
  %0 = core.matmul %r, %a : (tensor<5x128xf32>, tensor<128x39xf32>) -> tensor<5x39xf32>
  %1 = core.matmul %t, %b : (tensor<6x127xf32>, tensor<127x39xf32>) -> tensor<6x39xf32>
  %2 = core.matmul %x, %c : (tensor<6x128xf32>, tensor<128x31xf32>) -> tensor<6x31xf32>
  %3 = core.matmul %x, %d : (tensor<6x128xf32>, tensor<128x519xf32>) -> tensor<6x519xf32>
  %4 = core.matmul %x, %e : (tensor<6x128xf32>, tensor<128x39xf32>) -> tensor<6x39xf32>
  %5 = core.neg %e : (tensor<128x39xf32>) -> tensor<128x39xf32>
  %6 = core.matmul %x, %m : (tensor<6x128xf32>, tensor<128x39xf32>) -> tensor<6x39xf32>
  func.return %0, %1, %2, %3, %4, %5, %6 : tensor<5x39xf32>, tensor<6x39xf32>, tensor<6x31xf32>, tensor<6x519xf32>, tensor<6x39xf32>, tensor<128x39xf32>, tensor<6x39xf32>
}
