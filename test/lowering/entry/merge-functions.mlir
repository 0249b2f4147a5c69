// RUN: opt-tool %s --pass-pipeline=merge-functions --split-input-file | filecheck %s

// Functions that scale and shift by other numbers are one, which reads them: floats and integers from
// a buffer each, before the result. The number that both have stays, and so does the first name of the
// symbol. The same two numbers the other way round are other numbers.
// CHECK-LABEL: buffer.func @first
// CHECK-NEXT:  ^bb0(%[[X:[a-z0-9]+]]: !buffer.ref<[s0] x f32>, %[[F:[0-9]+]]: !buffer.ref<[2] x f32>, %[[I:[0-9]+]]: !buffer.ref<[1] x i32>, %[[Y:[a-z0-9]+]]: !buffer.ref<[s0] x i32>):
// CHECK-DAG:     %[[ZERO:[a-z0-9]+]] = buffer.load %[[I]] <[0]>
// CHECK-DAG:     %[[SCALE:[a-z0-9]+]] = buffer.load %[[F]] <[0]>
// CHECK-DAG:     %[[SHIFT:[a-z0-9]+]] = buffer.load %[[F]] <[1]>
// CHECK-NEXT:    %[[ONE:[a-z0-9]+]] = arith.constant 1.000000e+00 : f32
// CHECK:         arith.mulf %{{[a-z0-9]+}}, %[[SCALE]]
// CHECK-NEXT:    arith.addf %{{[a-z0-9]+}}, %[[SHIFT]]
// CHECK-NEXT:    arith.addf %{{[a-z0-9]+}}, %[[ONE]]
// CHECK:         arith.addi %{{[a-z0-9]+}}, %[[ZERO]]
// CHECK:       symbols = ["n"], outputs = #builtin.int<1>
// CHECK-NOT:   buffer.func
// CHECK-LABEL: buffer.entry
// CHECK-DAG:     %[[F1:[0-9]+]] = buffer.weight {value = #core.blob<"0x000040400000A040">} : !buffer.ref<[2] x f32>
// CHECK-DAG:     %[[I1:[0-9]+]] = buffer.weight {value = #core.blob<"0x07000000">} : !buffer.ref<[1] x i32>
// CHECK-DAG:     %[[F2:[0-9]+]] = buffer.weight {value = #core.blob<"0x0000A04000004040">} : !buffer.ref<[2] x f32>
// CHECK-DAG:     %[[I2:[0-9]+]] = buffer.weight {value = #core.blob<"0xF7FFFFFF">} : !buffer.ref<[1] x i32>
// CHECK-NOT:     buffer.weight
// CHECK:         buffer.call @first(%[[A:[a-z]+]], %[[F1]], %[[I1]], %[[B:[a-z]+]]) <[n]>
// CHECK:         buffer.call @first(%[[A]], %[[F2]], %[[I2]], %[[C:[a-z]+]]) <[n]>
// CHECK:         buffer.call @first(%[[A]], %[[F1]], %[[I1]], %[[C]]) <[n]>
buffer.func @first {
^bb0(%x : !buffer.ref<[s0] x f32>, %y : !buffer.ref<[s0] x i32>):
  %scale = arith.constant 3.0 : f32
  %shift = arith.constant 5.0 : f32
  %zero = arith.constant 7 : i32
  %one = arith.constant 1.0 : f32
  buffer.for <[0, s0, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[s0] x f32> -> f32
    %a = arith.mulf %v, %scale : f32
    %b = arith.addf %a, %shift : f32
    %c = arith.addf %b, %one : f32
    %d = arith.fptosi %c : f32 to i32
    %e = arith.addi %d, %zero : i32
    buffer.store %e, %y(%i) <[d0]> : i32, !buffer.ref<[s0] x i32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// Another name of the symbol, and the same two numbers the other way round.
buffer.func @second {
^bb0(%x : !buffer.ref<[s0] x f32>, %y : !buffer.ref<[s0] x i32>):
  %scale = arith.constant 5.0 : f32
  %shift = arith.constant 3.0 : f32
  %zero = arith.constant -9 : i32
  %one = arith.constant 1.0 : f32
  buffer.for <[0, s0, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[s0] x f32> -> f32
    %a = arith.mulf %v, %scale : f32
    %b = arith.addf %a, %shift : f32
    %c = arith.addf %b, %one : f32
    %d = arith.fptosi %c : f32 to i32
    %e = arith.addi %d, %zero : i32
    buffer.store %e, %y(%i) <[d0]> : i32, !buffer.ref<[s0] x i32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["m"], outputs = #builtin.int<1>}

buffer.entry ["x", "c"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[n] x f32>, %k : !buffer.ref<[] x i1>, %y : !buffer.ref<[n] x i32>, %z : !buffer.ref<[n] x i32>):
  buffer.call @first(%x, %y) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x i32>)
  buffer.if %k : !buffer.ref<[] x i1> {
    buffer.call @second(%x, %z) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x i32>)
    buffer.yield
  } else {
    buffer.call @first(%x, %z) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x i32>)
    buffer.yield
  }
  buffer.return
}

// -----

// A compiler divides by 4 by multiplying, so that function keeps its number.
// CHECK-LABEL: buffer.func @by_three
// CHECK-NEXT:  ^bb0(%{{[a-z0-9]+}}: !buffer.ref<[] x f32>, %[[F:[0-9]+]]: !buffer.ref<[1] x f32>
// CHECK-LABEL: buffer.func @by_four
// CHECK:         arith.constant 4.000000e+00 : f32
// CHECK-NOT:   buffer.func
// CHECK-LABEL: buffer.entry
// CHECK:         %[[THREE:[0-9]+]] = buffer.weight {value = #core.blob<"0x00004040">}
// CHECK-NEXT:    %[[FIVE:[0-9]+]] = buffer.weight {value = #core.blob<"0x0000A040">}
// CHECK-NEXT:    buffer.call @by_three(%{{[a-z]+}}, %[[THREE]],
// CHECK-NEXT:    buffer.call @by_four(%{{[a-z]+}}, %y1)
// CHECK-NEXT:    buffer.call @by_three(%{{[a-z]+}}, %[[FIVE]],
buffer.func @by_three {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 3.0 : f32
  %r = arith.divf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @by_four {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 4.0 : f32
  %r = arith.divf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @by_five {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 5.0 : f32
  %r = arith.divf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y0", "y1", "y2"] {
^bb0(%x : !buffer.ref<[] x f32>, %y0 : !buffer.ref<[] x f32>, %y1 : !buffer.ref<[] x f32>, %y2 : !buffer.ref<[] x f32>):
  buffer.call @by_three(%x, %y0) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @by_four(%x, %y1) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @by_five(%x, %y2) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.return
}

// -----

// Zeros of both signs are different numbers.
// CHECK-LABEL: buffer.func @plus_zero
// CHECK-NOT:   buffer.func
// CHECK-LABEL: buffer.entry
// CHECK-DAG:     %[[PLUS:[0-9]+]] = buffer.weight {value = #core.blob<"0x00000000">}
// CHECK-DAG:     %[[MINUS:[0-9]+]] = buffer.weight {value = #core.blob<"0x00000080">}
// CHECK:         buffer.call @plus_zero(%{{[a-z]+}}, %[[PLUS]],
// CHECK-NEXT:    buffer.call @plus_zero(%{{[a-z]+}}, %[[MINUS]],
buffer.func @plus_zero {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 0.0 : f32
  %r = arith.addf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @minus_zero {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant -0.0 : f32
  %r = arith.addf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y0", "y1"] {
^bb0(%x : !buffer.ref<[] x f32>, %y0 : !buffer.ref<[] x f32>, %y1 : !buffer.ref<[] x f32>):
  buffer.call @plus_zero(%x, %y0) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @minus_zero(%x, %y1) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.return
}

// -----

// Functions that differ in what they compute, in a product of integers, in a sum of numbers, which a
// compiler rounds by itself, and in what a loop begins with.
// CHECK-COUNT-8: buffer.func
// CHECK-NOT:   buffer.weight
// CHECK:       buffer.call @loop_2(%x, %y7)
buffer.func @sum {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 3.0 : f32
  %r = arith.addf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @difference {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 5.0 : f32
  %r = arith.subf %v, %c : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @product_1 {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %i = arith.fptosi %v : f32 to i32
  %c = arith.constant 3 : i32
  %p = arith.muli %i, %c : i32
  %r = arith.sitofp %p : i32 to f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @product_2 {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %i = arith.fptosi %v : f32 to i32
  %c = arith.constant 5 : i32
  %p = arith.muli %i, %c : i32
  %r = arith.sitofp %p : i32 to f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @numbers_1 {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 3.0 : f32
  %d = arith.constant 7.0 : f32
  %s = arith.mulf %c, %d : f32
  %r = arith.addf %v, %s : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @numbers_2 {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 5.0 : f32
  %d = arith.constant 7.0 : f32
  %s = arith.mulf %c, %d : f32
  %r = arith.addf %v, %s : f32
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @loop_1 {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 3.0 : f32
  %r = buffer.for <[0, 4, 1]> carry %c : f32 -> f32 {
  ^bb1(%i : index, %s : f32):
    %n = arith.mulf %s, %v : f32
    buffer.yield %n : f32
  } {parallel = false}
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @loop_2 {
^bb0(%x : !buffer.ref<[] x f32>, %y : !buffer.ref<[] x f32>):
  %v = buffer.load %x <[]> : !buffer.ref<[] x f32> -> f32
  %c = arith.constant 5.0 : f32
  %r = buffer.for <[0, 4, 1]> carry %c : f32 -> f32 {
  ^bb1(%i : index, %s : f32):
    %n = arith.mulf %s, %v : f32
    buffer.yield %n : f32
  } {parallel = false}
  buffer.store %r, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"] {
^bb0(%x : !buffer.ref<[] x f32>, %y0 : !buffer.ref<[] x f32>, %y1 : !buffer.ref<[] x f32>, %y2 : !buffer.ref<[] x f32>, %y3 : !buffer.ref<[] x f32>, %y4 : !buffer.ref<[] x f32>, %y5 : !buffer.ref<[] x f32>, %y6 : !buffer.ref<[] x f32>, %y7 : !buffer.ref<[] x f32>):
  buffer.call @sum(%x, %y0) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @difference(%x, %y1) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @product_1(%x, %y2) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @product_2(%x, %y3) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @numbers_1(%x, %y4) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @numbers_2(%x, %y5) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @loop_1(%x, %y6) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.call @loop_2(%x, %y7) <[]> : (!buffer.ref<[] x f32>, !buffer.ref<[] x f32>)
  buffer.return
}
