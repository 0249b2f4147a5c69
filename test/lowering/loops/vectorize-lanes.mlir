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
// With a variable, NaN may be on the left, too.
// CHECK-LABEL: buffer.func @maxima
// CHECK:       %[[A:.*]] = buffer.load %x
// CHECK:       %[[Z:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
// CHECK-NEXT:  %[[R:.*]] = buffer.maxf %[[Z]], %[[A]] : vector<4xf32>
// CHECK:       %[[B:.*]] = buffer.load %y
// CHECK-NEXT:  %[[M:.*]] = buffer.maxf keeps_nan %[[R]], %[[B]] : vector<4xf32>
// CHECK-NEXT:  buffer.store %[[M]]
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
// element.
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
^bb0(%x: !buffer.ref<[40] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 9]> : !buffer.ref<[40] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %y(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    buffer.store %a, %x(%i) <[d0 * 2]> : f32, !buffer.ref<[40] x f32>
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

// Near each other along another dimension than the last.
// CHECK-LABEL: buffer.func @column
// CHECK-NOT:   buffer.for
// CHECK:       buffer.load %{{.*}} <[0, 1]> : !buffer.ref<[4, 2] x f32> -> vector<4xf32> {axis = #builtin.int<0>}
buffer.func @column {
^bb0(%x: !buffer.ref<[4, 2] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0, 1]> : !buffer.ref<[4, 2] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Each two lanes share one element.
// CHECK-LABEL: buffer.func @pairs
// CHECK-NOT:   buffer.for
// CHECK:       buffer.load %{{.*}} <[3]> : !buffer.ref<[9] x f32> -> vector<4xf32> {repeat = #builtin.int<2>}
buffer.func @pairs {
^bb0(%x: !buffer.ref<[9] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 floordiv 2 + 3]> : !buffer.ref<[9] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Too far apart along another dimension.
// CHECK-LABEL: buffer.func @far_column
// CHECK:       buffer.for <[0, 4, 1]>
// CHECK-NOT:   vector<
// CHECK:       } {parallel = false, label = "i"}
buffer.func @far_column {
^bb0(%x: !buffer.ref<[4, 9] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[4, 9] x f32> -> f32
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

// Masks are as wide as what was compared.
// CHECK-LABEL: buffer.func @chosen_doubles
// CHECK-NOT:   buffer.for
// CHECK:       %[[A:.*]] = buffer.load %x <[0]> : {{.*}} -> vector<4xf64>
// CHECK:       %[[M:.*]] = buffer.compare lt %[[A]], %{{.*}} : vector<4xf64> -> vector<4xi64>
// CHECK-NEXT:  buffer.select %[[M]], %{{.*}}, %[[A]] : vector<4xi64>, vector<4xf64>
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

// To a narrow integer: NaN is zero, and what does not fit the nearest that does.
// CHECK-LABEL: buffer.func @saturated
// CHECK-NOT:   buffer.for
// CHECK:       %[[A:.*]] = buffer.load %x <[0]> : {{.*}} -> vector<4xf32>
// CHECK:       %[[M:.*]] = buffer.compare eq %[[A]], %[[A]]
// CHECK:       %[[N:.*]] = buffer.select %[[M]], %[[A]]
// CHECK:       %[[L:.*]] = buffer.maxf %[[N]]
// CHECK:       %[[H:.*]] = buffer.minf %[[L]]
// CHECK:       %[[I:.*]] = buffer.convert %[[H]] : vector<4xf32> -> vector<4xi32>
// CHECK-NEXT:  %[[B:.*]] = buffer.convert %[[I]] : vector<4xi32> -> vector<4xi8>
// CHECK-NEXT:  buffer.store %[[B]], %y
buffer.func @saturated {
^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x i8>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %b = arith.fptosi %a : f32 to i8
    buffer.store %b, %y(%i) <[d0]> : i8, !buffer.ref<[4] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Without signs the maximum with 0 is enough: it is 0 for NaN.
// CHECK-LABEL: buffer.func @unsigned
// CHECK:       %[[A:.*]] = buffer.load %x <[0]> : {{.*}} -> vector<4xf32>
// CHECK-NOT:   buffer.select
// CHECK:       %[[L:.*]] = buffer.maxf %[[A]]
// CHECK:       buffer.minf %[[L]]
buffer.func @unsigned {
^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x ui8>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %b = arith.fptoui %a : f32 to i8
    buffer.store %b, %y(%i) <[d0]> : i8, !buffer.ref<[4] x ui8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Quotients of i32 come from f64: 0 for a divisor of 0, and the one that is too large wraps.
// CHECK-LABEL: buffer.func @quotients
// CHECK:       %[[A:.*]] = buffer.convert %{{.*}} : vector<4xi32> -> vector<4xf64>
// CHECK:       %[[B:.*]] = buffer.convert %{{.*}} : vector<4xi32> -> vector<4xf64>
// CHECK:       %[[Q:.*]] = arith.divf %[[A]], %[[B]] : vector<4xf64>
// CHECK:       %[[Z:.*]] = buffer.compare eq %{{.*}} : vector<4xi32> -> vector<4xi32>
// CHECK-NEXT:  %[[M:.*]] = buffer.convert %[[Z]] : vector<4xi32> -> vector<4xi64>
// CHECK:       buffer.select %[[M]], %{{.*}}, %[[Q]]
// CHECK:       buffer.compare eq
// CHECK:       %[[S:.*]] = buffer.select
// CHECK-NEXT:  %[[I:.*]] = buffer.convert %[[S]] : vector<4xf64> -> vector<4xi32>
// CHECK-NEXT:  buffer.store %[[I]]
buffer.func @quotients {
^bb0(%x: !buffer.ref<[4] x i32>, %y: !buffer.ref<[4] x i32>, %z: !buffer.ref<[4] x i32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x i32> -> i32
    %b = buffer.load %y(%i) <[d0]> : !buffer.ref<[4] x i32> -> i32
    %c = arith.divsi %a, %b : i32
    buffer.store %c, %z(%i) <[d0]> : i32, !buffer.ref<[4] x i32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What C compilers turn into a product of integers is left to them.
// CHECK-LABEL: buffer.func @by_constant
// CHECK:       arith.divsi %{{.*}} : i32
buffer.func @by_constant {
^bb0(%x: !buffer.ref<[4] x i32>, %z: !buffer.ref<[4] x i32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x i32> -> i32
    %b = arith.constant 3 : i32
    %c = arith.divsi %a, %b : i32
    buffer.store %c, %z(%i) <[d0]> : i32, !buffer.ref<[4] x i32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Truth values are bytes in memory, and masks of two widths meet in the wider one.
// CHECK-LABEL: buffer.func @truths
// CHECK:       %[[A:.*]] = buffer.load %x <[0]> : !buffer.ref<[4] x i1> -> vector<4xi8>
// CHECK:       %[[M:.*]] = buffer.compare ne %[[A]], %{{.*}} : vector<4xi8> -> vector<4xi8>
// CHECK:       %[[N:.*]] = buffer.compare unsigned lt %{{.*}} : vector<4xi16> -> vector<4xi16>
// CHECK-NEXT:  %[[W:.*]] = buffer.convert %[[M]] : vector<4xi8> -> vector<4xi16>
// CHECK-NEXT:  %[[B:.*]] = arith.andi %[[W]], %[[N]] : vector<4xi16>
// CHECK-NEXT:  %[[C:.*]] = buffer.convert %[[B]] : vector<4xi16> -> vector<4xi8>
// CHECK:       %[[D:.*]] = arith.andi %[[C]], %{{.*}} : vector<4xi8>
// CHECK-NEXT:  buffer.store %[[D]], %z <[0]> : vector<4xi8>, !buffer.ref<[4] x i1>
buffer.func @truths {
^bb0(%x: !buffer.ref<[4] x i1>, %y: !buffer.ref<[4] x i16>, %z: !buffer.ref<[4] x i1>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x i1> -> i1
    %b = buffer.load %y(%i) <[d0]> : !buffer.ref<[4] x i16> -> i16
    %seven = arith.constant 7 : i16
    %c = arith.cmpi ult, %b, %seven : i16
    %d = arith.andi %a, %c : i1
    buffer.store %d, %z(%i) <[d0]> : i1, !buffer.ref<[4] x i1>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What few lanes need is computed if one does; a function of the C library lane by lane.
// CHECK-LABEL: buffer.func @rare
// CHECK:       %[[U:.*]] = arith.negf %[[A:.*]] : vector<4xf64>
// CHECK-NEXT:  %[[W:.*]] = buffer.convert %[[M:.*]] : vector<4xi64> -> vector<4xi32>
// CHECK-NEXT:  %[[ANY:.*]] = buffer.any %[[W]] : vector<4xi32>
// CHECK-NEXT:  %[[R:.*]] = scf.if %[[ANY]] -> (vector<4xf64>) {
// CHECK:         buffer.store %[[A]], %{{.*}} <[0]>
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:           math.sin %{{.*}} : f64
// CHECK:         buffer.select
// CHECK:       } else {
// CHECK-NEXT:    scf.yield %[[U]]
// CHECK:       buffer.store %[[R]], %y
buffer.func @rare {
^bb0(%x: !buffer.ref<[4] x f64>, %y: !buffer.ref<[4] x f64>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f64> -> f64
    %large = arith.constant 1048576.0 : f64
    %c = arith.cmpf oge, %a, %large : f64
    %b = scf.if %c -> (f64) {
      %s = math.sin %a : f64
      scf.yield %s : f64
    } else {
      %n = arith.negf %a : f64
      scf.yield %n : f64
    }
    buffer.store %b, %y(%i) <[d0]> : f64, !buffer.ref<[4] x f64>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// It is not where memory is read: the lanes that go the other way may have nothing there.
// CHECK-LABEL: buffer.func @guarded
// CHECK:       buffer.for <[0, 4, 1]>
// CHECK-NOT:   vector<
buffer.func @guarded {
^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf oge, %a, %zero : f32
    %b = scf.if %c -> (f32) {
      %s = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
      scf.yield %s : f32
    } else {
      scf.yield %a : f32
    }
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Where all lanes go one way, the branch stays one, around a vector that needs no guard of its own.
// CHECK-LABEL: buffer.func @all_or_none
// CHECK:       %[[C:.*]] = arith.cmpi
// CHECK:       %[[R:.*]] = scf.if %[[C]] -> (vector<4xf32>) {
// CHECK-NEXT:    buffer.load %x(%{{.*}}) <[d0 - 1, 0]> : !buffer.ref<[1, 4] x f32> -> vector<4xf32>
// CHECK:       } else {
// CHECK:       buffer.store %[[R]], %y
buffer.func @all_or_none {
^bb0(%x: !buffer.ref<[1, 4] x f32>, %y: !buffer.ref<[3, 4] x f32>):
  buffer.for <[0, 3, 1]> {
  ^bb1(%n: index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%i: index):
      %number = arith.index_cast %n : index to i64
      %one = arith.constant 1 : i64
      %c = arith.cmpi eq, %number, %one : i64
      %b = scf.if %c -> (f32) {
        %s = buffer.load %x(%n, %i) <[d0 - 1, d1]> : !buffer.ref<[1, 4] x f32> -> f32 {volatile}
        scf.yield %s : f32
      } else {
        %zero = arith.constant 0.0 : f32
        scf.yield %zero : f32
      }
      buffer.store %b, %y(%n, %i) <[d0, d1]> : f32, !buffer.ref<[3, 4] x f32>
      buffer.yield
    } by lanes {parallel = false, label = "i"}
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Elements at places from data are put together if much is computed from them.
// CHECK-LABEL: buffer.func @fetched
// CHECK:       %[[P:.*]] = buffer.load %p <[0]> : !buffer.ref<[4] x i32> -> vector<4xi32>
// CHECK:       buffer.store %[[P]], %[[M:[a-z0-9_]*]]
// CHECK-NEXT:  %[[N:.*]] = buffer.load %[[M]] <[0]> : !buffer.ref<[4] x i32> -> i32
// CHECK-NEXT:  %[[I:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK-NEXT:  buffer.load %x(%[[I]]) <[d0, 0]> : !buffer.ref<[9, 4] x f32> -> f32
// CHECK:       buffer.load %x(%{{.*}}) <[d0, 3]>
// CHECK-NEXT:  buffer.from_lanes %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (f32, f32, f32, f32) -> vector<4xf32>
buffer.func @fetched {
^bb0(%x: !buffer.ref<[9, 4] x f32>, %p: !buffer.ref<[4] x i32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %n = buffer.load %p(%i) <[d0]> : !buffer.ref<[4] x i32> -> i32
    %w = arith.extsi %n : i32 to i64
    %k = arith.index_cast %w : i64 to index
    %a = buffer.load %x(%k, %i) <[d0, d1]> : !buffer.ref<[9, 4] x f32> -> f32
    %b = arith.mulf %a, %a : f32
    %c = arith.addf %a, %b : f32
    %d = arith.mulf %c, %b : f32
    buffer.store %d, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Where they are only moved, or few, the loop is as good.
// CHECK-LABEL: buffer.func @moved
// CHECK-NOT:   vector<
buffer.func @moved {
^bb0(%x: !buffer.ref<[9] x f32>, %p: !buffer.ref<[4] x i32>, %y: !buffer.ref<[4] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %n = buffer.load %p(%i) <[d0]> : !buffer.ref<[4] x i32> -> i32
    %w = arith.extsi %n : i32 to i64
    %k = arith.index_cast %w : i64 to index
    %a = buffer.load %x(%k) <[d0]> : !buffer.ref<[9] x f32> -> f32
    %b = arith.addf %a, %a : f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
