// RUN: opt-tool %s --pass-pipeline=count-iterations,dce --split-input-file --check-each | filecheck %s

// A counter is the number of the iteration; after the loop it is the bound. No condition is left.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[N:.+]] = core.constant dense<7> : tensor<i64>
// CHECK-DAG:     %[[K:.+]] = core.constant dense<7> : tensor<i32>
// CHECK:         core.loop trip %[[N]] : tensor<i64> carry %x : tensor<3xf32> -> tensor<3xf32> {
// CHECK:           core.from_dims [u0] shape []
// CHECK:         } {iteration = "u0"}
// CHECK-NEXT:    func.return %{{.+}}, %[[K]]
func.func @main(%x : tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>) {
  %c = core.constant dense<true> : tensor<i1>
  %zero = core.constant dense<0> : tensor<i32>
  %one = core.constant dense<1> : tensor<i32>
  %n = core.constant dense<7> : tensor<i32>
  %r, %k = core.loop cond %c : tensor<i1> carry %x, %zero : tensor<3xf32>, tensor<i32>
      -> tensor<3xf32>, tensor<i32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i32>):
    %f = core.cast %j to f32 : (tensor<i32>) -> tensor<f32>
    %w = core.add %v, %f : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %next = core.add %j, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %go = core.compare lt %next, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i32>
  }
  func.return %r, %k : tensor<3xf32>, tensor<i32>
}

// -----

// Two counters, of which one has a bound that is not known; both comparisons the other way around.
// The first condition is that of the first counters: no more than n, and none if n <= 2.
// CHECK-LABEL: func.func @main
// CHECK:         %[[B:.+]] = core.cast %n to i64
// CHECK:         %[[START:.+]] = core.constant dense<2> : tensor<i64>
// CHECK:         %[[M:.+]] = core.max %[[B]], %[[START]]
// CHECK:         %[[D:.+]] = core.sub %[[M]], %[[START]]
// CHECK:         %[[FIVE:.+]] = core.constant dense<5> : tensor<i64>
// CHECK:         %[[T:.+]] = core.min %[[FIVE]], %[[D]]
// CHECK:         core.loop trip %[[T]] : tensor<i64> carry %x
func.func @main(%x : tensor<3xf32>, %n : tensor<i32>) -> tensor<3xf32> {
  %zero = core.constant dense<0> : tensor<i32>
  %one = core.constant dense<1> : tensor<i32>
  %two = core.constant dense<2> : tensor<i32>
  %five = core.constant dense<5> : tensor<i32>
  %c = core.compare lt %two, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r, %k, %l = core.loop cond %c : tensor<i1> carry %x, %zero, %two
      : tensor<3xf32>, tensor<i32>, tensor<i32> -> tensor<3xf32>, tensor<i32>, tensor<i32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %p : tensor<i32>, %q : tensor<i32>):
    %w = core.add %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %np = core.add %one, %p : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %nq = core.add %q, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %a = core.compare gt %five, %np : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %b = core.compare gt %n, %nq : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %go = core.and %a, %b : (tensor<i1>, tensor<i1>) -> tensor<i1>
    core.yield %go, %w, %np, %nq : tensor<i1>, tensor<3xf32>, tensor<i32>, tensor<i32>
  }
  func.return %r : tensor<3xf32>
}

// -----

// The first iteration runs whatever the bound is: one more than the tests that hold.
// CHECK-LABEL: func.func @main
// CHECK:         %[[D:.+]] = core.sub
// CHECK:         %[[T:.+]] = core.add %[[D]], %{{.+}}
// CHECK-NOT:     core.select
// CHECK:         core.loop trip %[[T]] : tensor<i64> carry %x
func.func @main(%x : tensor<3xf32>, %n : tensor<i8>) -> tensor<3xf32> {
  %c = core.constant dense<true> : tensor<i1>
  %zero = core.constant dense<0> : tensor<i8>
  %one = core.constant dense<1> : tensor<i8>
  %r, %k = core.loop cond %c : tensor<i1> carry %x, %zero : tensor<3xf32>, tensor<i8>
      -> tensor<3xf32>, tensor<i8> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i8>):
    %w = core.add %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %next = core.add %j, %one : (tensor<i8>, tensor<i8>) -> tensor<i8>
    %go = core.compare lt %next, %n : (tensor<i8>, tensor<i8>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i8>
  }
  func.return %r : tensor<3xf32>
}

// -----

// Any first condition: either no iteration, or those.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.+]] = core.select %c
// CHECK:         core.loop trip %[[T]] : tensor<i64> carry %x
func.func @main(%x : tensor<3xf32>, %c : tensor<i1>) -> tensor<3xf32> {
  %zero = core.constant dense<0> : tensor<i32>
  %one = core.constant dense<1> : tensor<i32>
  %n = core.constant dense<3> : tensor<i32>
  %r, %k = core.loop cond %c : tensor<i1> carry %x, %zero : tensor<3xf32>, tensor<i32>
      -> tensor<3xf32>, tensor<i32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i32>):
    %w = core.add %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %next = core.add %j, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %go = core.compare lt %next, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i32>
  }
  func.return %r : tensor<3xf32>
}

// -----

// Steps of 3 up to and with 11: 2, 5, 8, 11. The last test is of 14.
// CHECK-LABEL: func.func @main
// CHECK:         %[[N:.+]] = core.constant dense<4> : tensor<i64>
// CHECK:         core.loop trip %[[N]] : tensor<i64>
// CHECK:           core.from_dims [u0 * 3 + 2]
func.func @main(%x : tensor<3xf32>) -> tensor<3xf32> {
  %c = core.constant dense<true> : tensor<i1>
  %two = core.constant dense<2> : tensor<i64>
  %three = core.constant dense<3> : tensor<i64>
  %n = core.constant dense<11> : tensor<i64>
  %r, %k = core.loop cond %c : tensor<i1> carry %x, %two : tensor<3xf32>, tensor<i64>
      -> tensor<3xf32>, tensor<i64> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i64>):
    %f = core.cast %j to f32 : (tensor<i64>) -> tensor<f32>
    %w = core.add %v, %f : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %next = core.add %j, %three : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %go = core.compare le %next, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i64>
  }
  func.return %r : tensor<3xf32>
}

// -----

// Downward: 9, 7, 5, 3. The test is of the number before the step, so one iteration more follows.
// CHECK-LABEL: func.func @main
// CHECK:         %[[N:.+]] = core.constant dense<5> : tensor<i64>
// CHECK:         core.loop trip %[[N]] : tensor<i64>
func.func @main(%x : tensor<3xf32>) -> tensor<3xf32> {
  %c = core.constant dense<true> : tensor<i1>
  %nine = core.constant dense<9> : tensor<i16>
  %two = core.constant dense<2> : tensor<i16>
  %r, %k = core.loop cond %c : tensor<i1> carry %x, %nine : tensor<3xf32>, tensor<i16>
      -> tensor<3xf32>, tensor<i16> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i16>):
    %w = core.add %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %next = core.sub %j, %two : (tensor<i16>, tensor<i16>) -> tensor<i16>
    %go = core.compare gt %j, %two : (tensor<i16>, tensor<i16>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i16>
  }
  func.return %r : tensor<3xf32>
}

// -----

// The trip count that the loop has stays, where its condition holds each time.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.+]] = core.select %c, %n, %{{.+}}
// CHECK:         core.loop trip %[[T]] : tensor<i64> carry %x
func.func @main(%x : tensor<3xf32>, %n : tensor<i64>, %c : tensor<i1>) -> tensor<3xf32> {
  %r = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x : tensor<3xf32>
      -> tensor<3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>):
    %w = core.add %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %true = core.constant dense<true> : tensor<i1>
    core.yield %true, %w : tensor<i1>, tensor<3xf32>
  }
  func.return %r : tensor<3xf32>
}

// -----

// The nearest miss: all numbers of i8 are at most 127, so the counter wraps around to -128.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop trip %{{.+}} : tensor<i64> cond
func.func @main(%x : tensor<3xf32>) -> tensor<3xf32> {
  %c = core.constant dense<true> : tensor<i1>
  %most = core.constant dense<200> : tensor<i64>
  %zero = core.constant dense<0> : tensor<i8>
  %one = core.constant dense<1> : tensor<i8>
  %n = core.constant dense<127> : tensor<i8>
  %r, %k = core.loop trip %most : tensor<i64> cond %c : tensor<i1> carry %x, %zero
      : tensor<3xf32>, tensor<i8> -> tensor<3xf32>, tensor<i8> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i8>):
    %w = core.tanh %v : (tensor<3xf32>) -> tensor<3xf32>
    %next = core.add %j, %one : (tensor<i8>, tensor<i8>) -> tensor<i8>
    %go = core.compare le %next, %n : (tensor<i8>, tensor<i8>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i8>
  }
  func.return %r : tensor<3xf32>
}

// -----

// Steps of 2 may jump over the greatest number if the bound is not known.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop trip %{{.+}} : tensor<i64> cond
func.func @main(%x : tensor<3xf32>, %n : tensor<i8>) -> tensor<3xf32> {
  %c = core.constant dense<true> : tensor<i1>
  %most = core.constant dense<200> : tensor<i64>
  %zero = core.constant dense<0> : tensor<i8>
  %two = core.constant dense<2> : tensor<i8>
  %r, %k = core.loop trip %most : tensor<i64> cond %c : tensor<i1> carry %x, %zero
      : tensor<3xf32>, tensor<i8> -> tensor<3xf32>, tensor<i8> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>, %j : tensor<i8>):
    %w = core.tanh %v : (tensor<3xf32>) -> tensor<3xf32>
    %next = core.add %j, %two : (tensor<i8>, tensor<i8>) -> tensor<i8>
    %go = core.compare lt %next, %n : (tensor<i8>, tensor<i8>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<3xf32>, tensor<i8>
  }
  func.return %r : tensor<3xf32>
}

// -----

// The bound is what the loop computes.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop cond
func.func @main(%x : tensor<i32>) -> tensor<i32> {
  %c = core.constant dense<true> : tensor<i1>
  %zero = core.constant dense<0> : tensor<i32>
  %one = core.constant dense<1> : tensor<i32>
  %four = core.constant dense<4> : tensor<i32>
  %r, %k = core.loop cond %c : tensor<i1> carry %four, %zero : tensor<i32>, tensor<i32>
      -> tensor<i32>, tensor<i32> {
  ^bb0(%i : tensor<i64>, %v : tensor<i32>, %j : tensor<i32>):
    %w = core.sub %v, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %next = core.add %j, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %go = core.compare lt %next, %w : (tensor<i32>, tensor<i32>) -> tensor<i1>
    core.yield %go, %w, %next : tensor<i1>, tensor<i32>, tensor<i32>
  }
  func.return %r : tensor<i32>
}

// -----

// A counter that wraps around: from 120 on, 20 steps of an i8. As an i64 it has to be cast to i8
// and back; as an index it would be the number of the iteration plus 120 otherwise.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           %[[W:.+]] = core.from_dims [u0 + 120] shape []
// CHECK:           %[[J:.+]] = core.cast %[[W]] to i8
// CHECK:           core.cast %[[J]] to i64
func.func @main(%x : tensor<i64>) -> (tensor<i64>, tensor<i8>) {
  %n = core.constant dense<20> : tensor<i64>
  %start = core.constant dense<120> : tensor<i8>
  %one = core.constant dense<1> : tensor<i8>
  %r, %k = core.loop trip %n : tensor<i64> carry %x, %start : tensor<i64>, tensor<i8>
      -> tensor<i64>, tensor<i8> {
  ^bb0(%i : tensor<i64>, %v : tensor<i64>, %j : tensor<i8>):
    %f = core.cast %j to i64 : (tensor<i8>) -> tensor<i64>
    %w = core.add %v, %f : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %next = core.add %j, %one : (tensor<i8>, tensor<i8>) -> tensor<i8>
    core.yield %w, %next : tensor<i64>, tensor<i8>
  }
  func.return %r, %k : tensor<i64>, tensor<i8>
}

// -----

// Eight steps do not wrap around: the number is an expression, and 127 the last one.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           %[[W:.+]] = core.from_dims [u0 + 120] shape []
// CHECK-NOT:       core.cast
// CHECK:           core.add %{{.+}}, %[[W]]
func.func @main(%x : tensor<i64>) -> tensor<i64> {
  %n = core.constant dense<8> : tensor<i64>
  %start = core.constant dense<120> : tensor<i8>
  %one = core.constant dense<1> : tensor<i8>
  %r, %k = core.loop trip %n : tensor<i64> carry %x, %start : tensor<i64>, tensor<i8>
      -> tensor<i64>, tensor<i8> {
  ^bb0(%i : tensor<i64>, %v : tensor<i64>, %j : tensor<i8>):
    %f = core.cast %j to i64 : (tensor<i8>) -> tensor<i64>
    %w = core.add %v, %f : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %next = core.add %j, %one : (tensor<i8>, tensor<i8>) -> tensor<i8>
    core.yield %w, %next : tensor<i64>, tensor<i8>
  }
  func.return %r : tensor<i64>
}

// -----

// The number of the iteration is an expression, and so is the next number of a counter, from 3 on.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop trip %n : tensor<i64> carry %x : tensor<i64>
// CHECK-NEXT:    ^bb0(%{{.+}}: tensor<i64>, %[[V:.+]]: tensor<i64>):
// CHECK-NEXT:      %[[S:.+]] = core.from_dims [u0 * 2 + 5] shape []
// CHECK-NEXT:      %[[N:.+]] = core.from_dims [u0] shape []
// CHECK-NEXT:      %[[A:.+]] = core.mul %[[V]], %[[S]]
// CHECK-NEXT:      core.add %[[A]], %[[N]]
func.func @main(%x : tensor<i64>, %n : tensor<i64>) -> tensor<i64> {
  %three = core.constant dense<3> : tensor<i64>
  %two = core.constant dense<2> : tensor<i64>
  %r, %k = core.loop trip %n : tensor<i64> carry %x, %three : tensor<i64>, tensor<i64>
      -> tensor<i64>, tensor<i64> {
  ^bb0(%i : tensor<i64>, %v : tensor<i64>, %j : tensor<i64>):
    %next = core.add %j, %two : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %f = core.mul %v, %next : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %w = core.add %f, %i : (tensor<i64>, tensor<i64>) -> tensor<i64>
    core.yield %w, %next : tensor<i64>, tensor<i64>
  }
  func.return %r : tensor<i64>
}

// -----

// A start that is not known is added; what the counter is after a loop that did not run, too.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.+]] = core.max %n, %{{.+}}
// CHECK:         %[[P:.+]] = core.mul %[[T]], %{{.+}}
// CHECK:         %[[C:.+]] = core.cast %[[P]] to i8
// CHECK:         %[[K:.+]] = core.add %s, %[[C]]
// CHECK:         core.loop
// CHECK:           core.add %s, %{{.+}}
// CHECK:         func.return %{{.+}}, %[[K]]
func.func @main(%x : tensor<i8>, %n : tensor<i64>, %s : tensor<i8>) -> (tensor<i8>, tensor<i8>) {
  %three = core.constant dense<-3> : tensor<i8>
  %r, %k = core.loop trip %n : tensor<i64> carry %x, %s : tensor<i8>, tensor<i8>
      -> tensor<i8>, tensor<i8> {
  ^bb0(%i : tensor<i64>, %v : tensor<i8>, %j : tensor<i8>):
    %f = core.mul %v, %j : (tensor<i8>, tensor<i8>) -> tensor<i8>
    %next = core.add %j, %three : (tensor<i8>, tensor<i8>) -> tensor<i8>
    core.yield %f, %next : tensor<i8>, tensor<i8>
  }
  func.return %r, %k : tensor<i8>, tensor<i8>
}
