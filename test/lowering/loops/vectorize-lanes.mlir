// RUN: opt-tool --pass-pipeline=vectorize-lanes --split-input-file %s | filecheck %s

// What varies becomes a vector, what does not is put into all lanes once; loops carry vectors.
// CHECK-LABEL: buffer.func @products
// CHECK:       %[[C:.*]] = buffer.load %b <[0]> : {{.*}} -> vector<4xf32>
// CHECK-NEXT:  %[[S:.*]] = buffer.for <[0, 3, 1]> carry %[[C]] : vector<4xf32> -> vector<4xf32> {
// CHECK:         %[[X:.*]] = buffer.load %x(%{{.*}}) <[d0]> : {{.*}} -> f32
// CHECK-NEXT:    %[[W:.*]] = buffer.load %w(%{{.*}}) <[d0, 0]> : {{.*}} -> vector<4xf32>
// CHECK-NEXT:    %[[XX:.*]] = vector.broadcast %[[X]] : f32 to vector<4xf32>
// CHECK-NEXT:    math.fma %[[XX]], %[[W]], %{{.*}} : vector<4xf32>
// CHECK:       buffer.store %[[S]], %y <[0]> : vector<4xf32>
buffer.func @products {
^bb0(%x: !buffer.ref<[3] x f32>, %w: !buffer.ref<[3, 4] x f32>, %b: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %c = buffer.load %b(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %sum = buffer.for <[0, 3, 1]> carry %c : f32 -> f32 {
    ^bb2(%k: index, %s: f32):
      %a = buffer.load %x(%k) <[d0]> : !buffer.ref<[3] x f32> -> f32
      %f = buffer.load %w(%k, %i) <[d0, d1]> : !buffer.ref<[3, 4] x f32> -> f32
      %t = math.fma %a, %f, %s : f32
      buffer.yield %t : f32
    } {parallel = false}
    buffer.store %sum, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// A maximum with a number is one instruction, the number on the left: NaN comes from the right.
// With a variable, NaN on the left takes a selection.
// CHECK-LABEL: buffer.func @maxima
// CHECK:       %[[A:.*]] = buffer.load %x
// CHECK:       %[[Z:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
// CHECK-NEXT:  %[[R:.*]] = buffer.maxf %[[Z]], %[[A]] : vector<4xf32>
// CHECK:       %[[B:.*]] = buffer.load %y
// CHECK-NEXT:  %[[M:.*]] = buffer.maxf %[[R]], %[[B]] : vector<4xf32>
// CHECK-NEXT:  %[[N:.*]] = buffer.compare eq %[[R]], %[[R]]
// CHECK-NEXT:  buffer.select %[[N]], %[[M]], %[[R]]
buffer.func @maxima {
^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %a, %zero : f32
    %b = buffer.load %y(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %m = arith.maximumf %r, %b : f32
    buffer.store %m, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Nothing changes for three lanes, for elements that do not lie side by side, for a sum into one
// element, and for a type of another width.
// CHECK-LABEL: buffer.func @three
// CHECK:       buffer.for <[0, 3, 1]>
// CHECK-NOT:   vector<
// CHECK:       } {parallel = false, label = "i"}
buffer.func @three {
^bb0(%x: !buffer.ref<[3] x f32>, %y: !buffer.ref<[3] x f32>):
  buffer.for <[0, 3, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[3] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[3] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Elements some way apart are loaded as vectors, too.
// CHECK-LABEL: buffer.func @strided
// CHECK:         %[[V:.*]] = buffer.load %{{.*}} <[1]> : {{.*}} -> vector<4xf32> {stride = #builtin.int<3>}
// CHECK-NEXT:    buffer.store %[[V]], %{{.*}} <[0]>
buffer.func @strided {
^bb0(%x: !buffer.ref<[11] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 3 + 1]> : !buffer.ref<[11] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// So many that they lie further apart are not, and none are stored so.
// CHECK-LABEL: buffer.func @far
// CHECK-COUNT-2: buffer.for <[0, 4, 1]>
// CHECK-NOT:   vector<
// CHECK:       } {symbols
buffer.func @far {
^bb0(%x: !buffer.ref<[20] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 5]> : !buffer.ref<[20] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %y(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    buffer.store %a, %x(%i) <[d0 * 2]> : f32, !buffer.ref<[20] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Extrema of f64 and of narrow integers; the comparison goes where the extremum does it.
// CHECK-LABEL: buffer.func @extrema
// CHECK:         buffer.maxf %{{.*}} : vector<4xf64>
// CHECK-NOT:     cmpf
// CHECK:         arith.maxui %{{.*}} : vector<4xi8>
buffer.func @extrema {
^bb0(%x: !buffer.ref<[2, 4] x f64>, %y: !buffer.ref<[4] x f64>, %u: !buffer.ref<[2, 4] x ui8>, %v: !buffer.ref<[4] x ui8>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[0, d0]> : !buffer.ref<[2, 4] x f64> -> f64
    %b = buffer.load %x(%i) <[1, d0]> : !buffer.ref<[2, 4] x f64> -> f64
    %c = arith.cmpf ogt, %b, %a : f64
    %d = arith.select %c, %b, %a : f64
    buffer.store %d, %y(%i) <[d0]> : f64, !buffer.ref<[4] x f64>
    %e = buffer.load %u(%i) <[0, d0]> : !buffer.ref<[2, 4] x ui8> -> i8
    %f = buffer.load %u(%i) <[1, d0]> : !buffer.ref<[2, 4] x ui8> -> i8
    %g = arith.maxui %e, %f : i8
    buffer.store %g, %v(%i) <[d0]> : i8, !buffer.ref<[4] x ui8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

// -----

// A stride along another dimension.
// CHECK-LABEL: buffer.func @column
// CHECK:       buffer.for <[0, 4, 1]>
// CHECK-NOT:   vector<
// CHECK:       } {parallel = false, label = "i"}
buffer.func @column {
^bb0(%x: !buffer.ref<[4, 2] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[4, 2] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK-LABEL: buffer.func @one_element
// CHECK:       buffer.for <[0, 4, 1]>
// CHECK-NOT:   vector<
// CHECK:       } {parallel = false, label = "i"}
buffer.func @one_element {
^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[1] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %b = buffer.load %y <[0]> : !buffer.ref<[1] x f32> -> f32
    %s = arith.addf %a, %b : f32
    buffer.store %s, %y <[0]> : f32, !buffer.ref<[1] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK-LABEL: buffer.func @doubles
// CHECK-NOT:   buffer.for
// CHECK:       buffer.load %{{.*}} <[0]> : !buffer.ref<[4] x f64> -> vector<4xf64>
buffer.func @doubles {
^bb0(%x: !buffer.ref<[4] x f64>, %y: !buffer.ref<[4] x f64>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f64> -> f64
    buffer.store %a, %y(%i) <[d0]> : f64, !buffer.ref<[4] x f64>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Masks have lanes of 32 bits, not of 64.
// CHECK-LABEL: buffer.func @chosen_doubles
// CHECK:       buffer.for <[0, 4, 1]>
// CHECK-NOT:   vector<
// CHECK:       } {parallel = false, label = "i"}
buffer.func @chosen_doubles {
^bb0(%x: !buffer.ref<[4] x f64>, %y: !buffer.ref<[4] x f64>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f64> -> f64
    %zero = arith.constant 0.0 : f64
    %c = arith.cmpf olt, %a, %zero : f64
    %b = arith.select %c, %zero, %a : f64
    buffer.store %b, %y(%i) <[d0]> : f64, !buffer.ref<[4] x f64>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Narrow integers are loaded as they are, and become i32 before anything is done with them.
// CHECK-LABEL: buffer.func @widened
// CHECK:       %[[X:.*]] = buffer.load %x <[0]> : {{.*}} -> vector<4xi8>
// CHECK-NEXT:  %[[A:.*]] = buffer.convert unsigned %[[X]] : vector<4xi8> -> vector<4xi32>
// CHECK-NEXT:  %[[W:.*]] = buffer.load %w <[0]> : {{.*}} -> vector<4xi16>
// CHECK-NEXT:  %[[B:.*]] = buffer.convert %[[W]] : vector<4xi16> -> vector<4xi32>
// CHECK-NEXT:  arith.muli %[[A]], %[[B]] : vector<4xi32>
buffer.func @widened {
^bb0(%x: !buffer.ref<[4] x ui8>, %w: !buffer.ref<[4] x i16>, %y: !buffer.ref<[4] x i32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x ui8> -> i8
    %b = arith.extui %a : i8 to i32
    %c = buffer.load %w(%i) <[d0]> : !buffer.ref<[4] x i16> -> i16
    %d = arith.extsi %c : i16 to i32
    %e = arith.muli %b, %d : i32
    buffer.store %e, %y(%i) <[d0]> : i32, !buffer.ref<[4] x i32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// There are no vectors of i64.
// CHECK-LABEL: buffer.func @widened_further
// CHECK:         buffer.for <[0, 4, 1]>
buffer.func @widened_further {
^bb0(%x: !buffer.ref<[4] x ui8>, %y: !buffer.ref<[4] x i64>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x ui8> -> i8
    %b = arith.extui %a : i8 to i64
    buffer.store %b, %y(%i) <[d0]> : i64, !buffer.ref<[4] x i64>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
