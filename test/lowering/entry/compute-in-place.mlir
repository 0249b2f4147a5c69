// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,choose-strategies,bufferize,lower-kernels,vectorize-loops,tile,vectorize-lanes,compute-in-place --split-input-file | filecheck %s

// The sum of two softmaxes is written over the first one: vectors, a shorter one, and one element, each
// loaded before it is stored. The input and the output are the caller's.
// CHECK-LABEL: buffer.func @add_0
// CHECK-NEXT:  ^bb0(%[[B:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: !buffer.ref<[3, 21] x f32>):
// CHECK:         buffer.load %[[Y]]
// CHECK-NEXT:    buffer.load %[[B]]
// CHECK:         buffer.store %{{.*}}, %[[Y]]
// CHECK:       outputs = #builtin.int<1>
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^bb0(%[[X:[0-9]+]]: {{.*}}, %[[OUT:[0-9]+]]: {{.*}}):
// CHECK-NEXT:    %[[P:[0-9]+]] = buffer.alloc
// CHECK-NEXT:    buffer.call @softmax_0(%[[X]], %[[P]])
// CHECK-NEXT:    %[[Q:[0-9]+]] = buffer.alloc
// CHECK-NEXT:    buffer.call @softmax_1(%[[X]], %[[Q]])
// CHECK-NEXT:    buffer.call @add_0(%[[Q]], %[[P]])
// CHECK-NEXT:    buffer.call @softmax_0(%[[P]], %[[OUT]])
func.func @main(%x: tensor<3x21xf32>) -> tensor<3x21xf32> {
  %a = core.softmax %x axis 1 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  %b = core.softmax %x axis 0 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  %y = core.add %a, %b : (tensor<3x21xf32>, tensor<3x21xf32>) -> tensor<3x21xf32>
  %z = core.softmax %y axis 1 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  func.return %z : tensor<3x21xf32>
}

// -----

// The nearest miss: the first operand is read again, so the sum takes the place of the second.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @softmax_0(%{{[0-9]+}}, %[[P:[0-9]+]])
// CHECK:         buffer.call @softmax_1(%{{[0-9]+}}, %[[Q:[0-9]+]])
// CHECK-NEXT:    buffer.call @add_0(%[[P]], %[[Q]])
func.func @main(%x: tensor<3x21xf32>) -> (tensor<3x21xf32>, tensor<3x21xf32>) {
  %a = core.softmax %x axis 1 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  %b = core.softmax %x axis 0 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  %y = core.add %a, %b : (tensor<3x21xf32>, tensor<3x21xf32>) -> tensor<3x21xf32>
  %z = core.softmax %y axis 1 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  %w = core.softmax %a axis 1 : (tensor<3x21xf32>) -> tensor<3x21xf32>
  func.return %z, %w : tensor<3x21xf32>, tensor<3x21xf32>
}

// -----

// Neither an input nor a constant is overwritten, nor what a view of it shows.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[V:[0-9]+]] = buffer.view
// CHECK:         %[[R:[0-9]+]] = buffer.alloc
// CHECK:         buffer.call @add_0(%[[V]], %{{[0-9]+}}, %[[R]])
func.func @main(%x: tensor<42xf32>) -> tensor<2x21xf32> {
  %c = core.constant dense<2.0> : tensor<2x21xf32>
  %v = core.reshape %x [2, 21] : (tensor<42xf32>) -> tensor<2x21xf32>
  %y = core.add %v, %c : (tensor<2x21xf32>, tensor<2x21xf32>) -> tensor<2x21xf32>
  %z = core.softmax %y axis 1 : (tensor<2x21xf32>) -> tensor<2x21xf32>
  func.return %z : tensor<2x21xf32>
}

// -----

// All of a buffer under another shape is the buffer; a part of it is not.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[A:[0-9]+]] = buffer.alloc
// CHECK:         %[[V:[0-9]+]] = buffer.view %[[A]]
// CHECK-NEXT:    buffer.call @exp_0(%[[V]])
// CHECK-NEXT:    buffer.call @softmax_1(%[[V]]
func.func @main(%x: tensor<4x4xf32>) -> tensor<2x8xf32> {
  %a = core.softmax %x axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = core.reshape %a [2, 8] : (tensor<4x4xf32>) -> tensor<2x8xf32>
  %e = core.exp %v : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %z = core.softmax %e axis 1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %z : tensor<2x8xf32>
}

// -----

// What stands around the loop is there in the next iteration, too; what the loop makes is not.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[A:[0-9]+]] = buffer.alloc
// CHECK-NEXT:    buffer.call @softmax_{{[0-9]}}(%{{[0-9]+}}, %[[A]])
// CHECK:         buffer.loop
// CHECK:           %[[S:[0-9]+]] = buffer.alloc
// CHECK-NEXT:      buffer.call @softmax_{{[0-9]}}(%{{[0-9]+}}, %[[S]])
// CHECK-NEXT:      buffer.call @add_0(%[[A]], %[[S]])
// CHECK-NEXT:      buffer.call @softmax_{{[0-9]}}(%[[S]],
func.func @main(%x: tensor<4x8xf32>, %n: tensor<i64>) -> tensor<4x8xf32> {
  %a = core.softmax %x axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<4x8xf32> -> tensor<4x8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4x8xf32>):
    %s = core.softmax %v axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = core.add %a, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %t = core.softmax %y axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    core.yield %t : tensor<4x8xf32>
  }
  func.return %r : tensor<4x8xf32>
}

// -----

// One function, called in two ways: the call that must keep its operands keeps the function.
// CHECK:       buffer.func @add_0 {
// CHECK-NEXT:  ^bb0(%{{[0-9]+}}: {{.*}}, %{{[0-9]+}}: {{.*}}, %{{[0-9]+}}: {{.*}}):
// CHECK:       buffer.func @add_0_over_0 {
// CHECK-NEXT:  ^bb0(%{{[0-9]+}}: !buffer.ref<[4, 8] x f32>, %{{[0-9]+}}: !buffer.ref<[4, 8] x f32>):
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @add_0_over_0
// CHECK:         buffer.call @add_0(
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = core.softmax %x axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = core.add %a, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = core.softmax %y axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %w = core.add %z, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %z, %w : tensor<4x8xf32>, tensor<4x8xf32>
}
