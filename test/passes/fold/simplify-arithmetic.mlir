// RUN: opt-tool %s --pass-pipeline=simplify-arithmetic --split-input-file | filecheck %s

// CHECK-LABEL: @neutral
// CHECK-NOT:     core.{{add|sub|mul|div|pow}}
// CHECK:         func.return %x, %k
func.func @neutral(%x : tensor<2xf32>, %k : tensor<2xi64>) -> (tensor<2xf32>, tensor<2xi64>) {
  %nz = core.constant dense<-0.0> : tensor<f32>
  %z = core.constant dense<0.0> : tensor<f32>
  %o = core.constant dense<1.0> : tensor<2xf32>
  %a = core.add %x, %nz : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = core.sub %a, %z : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %c = core.mul %o, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %d = core.div %c, %o : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %e = core.pow %d, %o : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %i = core.constant dense<0> : tensor<2xi64>
  %f = core.add %k, %i : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  func.return %e, %f : tensor<2xf32>, tensor<2xi64>
}

// -----

// -0 + 0 is 0 and -0 - -0 is 0: these change x. 1 / x and 0 - x are no neutral operands either.
// CHECK-LABEL: @not_neutral
// CHECK:         core.add
// CHECK:         core.sub
// CHECK:         core.div
// CHECK:         core.sub
func.func @not_neutral(%x : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %nz = core.constant dense<-0.0> : tensor<f32>
  %z = core.constant dense<0.0> : tensor<f32>
  %o = core.constant dense<1.0> : tensor<f32>
  %a = core.add %x, %z : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = core.sub %x, %nz : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %c = core.div %o, %x : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %d = core.sub %z, %x : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a, %b, %c, %d : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// exp gives no -0, so + 0 changes nothing.
// CHECK-LABEL: @positive
// CHECK-NOT:     core.add
func.func @positive(%x : tensor<2xf32>) -> tensor<2xf32> {
  %z = core.constant dense<0.0> : tensor<f32>
  %e = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %a = core.add %e, %z : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %a : tensor<2xf32>
}

// -----

// The constant is neutral, but it makes the result larger.
// CHECK-LABEL: @broadcasts
// CHECK:         core.mul
func.func @broadcasts(%x : tensor<f32>) -> tensor<2xf32> {
  %o = core.constant dense<1.0> : tensor<2xf32>
  %a = core.mul %x, %o : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a : tensor<2xf32>
}

// -----

// CHECK-LABEL: @unary
// CHECK-NEXT:    %[[A:.*]] = core.abs %x
// CHECK-NEXT:    func.return %x, %b, %[[A]]
func.func @unary(%x : tensor<f32>, %b : tensor<i1>) -> (tensor<f32>, tensor<i1>, tensor<f32>) {
  %n = core.neg %x : (tensor<f32>) -> tensor<f32>
  %m = core.neg %n : (tensor<f32>) -> tensor<f32>
  %c = core.not %b : (tensor<i1>) -> tensor<i1>
  %d = core.not %c : (tensor<i1>) -> tensor<i1>
  %a = core.abs %n : (tensor<f32>) -> tensor<f32>
  func.return %m, %d, %a : tensor<f32>, tensor<i1>, tensor<f32>
}

// -----

// Without a sign, -3 is 253, which abs keeps; abs(abs(x)) is abs(x) all the same.
// CHECK-LABEL: @unsigned
// CHECK-NEXT:    %[[N:.*]] = core.neg %x
// CHECK-NEXT:    %[[A:.*]] = core.abs %[[N]]
// CHECK-NEXT:    %[[B:.*]] = core.abs %[[N]]
// CHECK-NEXT:    func.return %[[A]], %[[B]]
func.func @unsigned(%x : tensor<3xui8>) -> (tensor<3xui8>, tensor<3xui8>) {
  %n = core.neg %x : (tensor<3xui8>) -> tensor<3xui8>
  %a = core.abs %n : (tensor<3xui8>) -> tensor<3xui8>
  %b = core.abs %a : (tensor<3xui8>) -> tensor<3xui8>
  func.return %a, %b : tensor<3xui8>, tensor<3xui8>
}

// -----

// With NaN both x < y and x >= y are false; integers have no NaN, and eq is the opposite of ne.
// CHECK-LABEL: @comparison
// CHECK:         core.compare lt %x, %y
// CHECK-NEXT:    core.not
// CHECK-NEXT:    core.compare ne %x, %y
// CHECK-NEXT:    core.compare ge %i, %j
func.func @comparison(%x : tensor<f32>, %y : tensor<f32>, %i : tensor<i8>, %j : tensor<i8>) -> (tensor<i1>, tensor<i1>, tensor<i1>) {
  %a = core.compare lt %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %b = core.not %a : (tensor<i1>) -> tensor<i1>
  %c = core.compare eq %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %d = core.not %c : (tensor<i1>) -> tensor<i1>
  %e = core.compare lt %i, %j : (tensor<i8>, tensor<i8>) -> tensor<i1>
  %f = core.not %e : (tensor<i1>) -> tensor<i1>
  func.return %b, %d, %f : tensor<i1>, tensor<i1>, tensor<i1>
}

// -----

// i8 fits into f16, i64 does not fit into f64, and f32 to i32 and back loses the fraction.
// CHECK-LABEL: @casts
// CHECK-NEXT:    core.cast %a to i64 : (tensor<i8>)
// CHECK-NEXT:    core.cast %b to f64
// CHECK-NEXT:    core.cast {{.*}} to i64 : (tensor<f64>)
// CHECK-NEXT:    core.cast %c to i32
// CHECK-NEXT:    core.cast {{.*}} to f32
func.func @casts(%a : tensor<i8>, %b : tensor<i64>, %c : tensor<f32>) -> (tensor<i64>, tensor<i64>, tensor<f32>) {
  %d = core.cast %a to f16 : (tensor<i8>) -> tensor<f16>
  %e = core.cast %d to i64 : (tensor<f16>) -> tensor<i64>
  %f = core.cast %b to f64 : (tensor<i64>) -> tensor<f64>
  %g = core.cast %f to i64 : (tensor<f64>) -> tensor<i64>
  %h = core.cast %c to i32 : (tensor<f32>) -> tensor<i32>
  %i = core.cast %h to f32 : (tensor<i32>) -> tensor<f32>
  func.return %e, %g, %i : tensor<i64>, tensor<i64>, tensor<f32>
}

// -----

// x ^ 2 is x * x bit for bit; x ^ 0.5 is not sqrt(x), which differs at -0 and -infinity.
// CHECK-LABEL: @powers
// CHECK:         core.mul %x, %x
// CHECK:         core.pow
func.func @powers(%x : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %t = core.constant dense<2.0> : tensor<f32>
  %h = core.constant dense<0.5> : tensor<f32>
  %a = core.pow %x, %t : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = core.pow %x, %h : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// -----

// Integers: the constants meet. Floats would round differently.
// CHECK-LABEL: @reassociate
// CHECK:         %[[C:.*]] = core.add %{{[0-9a-z]+}}, %{{[0-9a-z]+}} : (tensor<i64>, tensor<i64>)
// CHECK-NEXT:    core.add %i, %[[C]]
// CHECK:         core.add %x
// CHECK-NEXT:    core.add
func.func @reassociate(%i : tensor<i64>, %x : tensor<f32>) -> (tensor<i64>, tensor<f32>) {
  %c = core.constant dense<3> : tensor<i64>
  %d = core.constant dense<4> : tensor<i64>
  %a = core.add %c, %i : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %b = core.add %a, %d : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %e = core.constant dense<0.1> : tensor<f32>
  %f = core.constant dense<0.2> : tensor<f32>
  %g = core.add %x, %e : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = core.add %g, %f : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %b, %h : tensor<i64>, tensor<f32>
}

// -----

// 0 and -0 are two values: this constant is not -0 everywhere.
// CHECK-LABEL: @mixed_zeros
// CHECK:       core.add
func.func @mixed_zeros(%x : tensor<3xf32>) -> tensor<3xf32> {
  %z = core.constant dense<[-0.0, -0.0, 0.0]> : tensor<3xf32>
  %a = core.add %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %a : tensor<3xf32>
}

// -----

// CHECK-LABEL: @negated_choice
// CHECK-NOT:   core.not
// CHECK:       core.select %c, %y, %x
func.func @negated_choice(%c : tensor<i1>, %x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
  %n = core.not %c : (tensor<i1>) -> tensor<i1>
  %a = core.select %n, %x, %y : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// -----

// The reciprocal of a power of two is exact; of 3 it is not, and of 2^-128 it is no finite f32.
// CHECK-LABEL: @quotients
// CHECK-DAG:     %[[C:.*]] = core.constant dense<-0.25> : tensor<f32>
// CHECK-DAG:     core.mul %x, %[[C]]
// CHECK-DAG:     core.div %x, %three
// CHECK-DAG:     core.div %x, %tiny
func.func @quotients(%x : tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %four = core.constant dense<-4.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %tiny = core.constant dense<2.938735877055719e-39> : tensor<f32>
  %0 = core.div %x, %four : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = core.div %x, %three : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = core.div %x, %tiny : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %0, %1, %2 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// Constants alone are for fold: here they would move round and round.
// CHECK-LABEL: @constants_alone
// CHECK-COUNT-2: core.add
func.func @constants_alone() -> tensor<i64> {
  %c = core.constant dense<3> : tensor<i64>
  %d = core.constant dense<4> : tensor<i64>
  %a = core.add %c, %d : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %b = core.add %a, %d : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %b : tensor<i64>
}

// -----

// A sum with 0, a square and a sigmoid are never -0: 0 more changes nothing.
// CHECK-LABEL: @never_minus_zero
// CHECK:         %[[A:.*]] = core.add %x
// CHECK:         %[[B:.*]] = core.mul %x, %x
// CHECK-NEXT:    func.return %[[A]], %[[B]]
func.func @never_minus_zero(%x : tensor<20xf32>) -> (tensor<20xf32>, tensor<20xf32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %a = core.add %x, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %b = core.add %a, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %c = core.mul %x, %x : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
  %d = core.add %c, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  func.return %b, %d : tensor<20xf32>, tensor<20xf32>
}

// -----

// relu(relu(x)), and clip(x, 0, 6) between relu and a tighter bound.
// CHECK-LABEL: @clamps
// CHECK:         %[[R:.*]] = core.max %x
// CHECK:         %[[Z:.*]] = core.constant dense<0.0>
// CHECK-NEXT:    %[[S:.*]] = core.max %x, %[[Z]]
// CHECK-NEXT:    %[[T:.*]] = core.constant dense<2.0>
// CHECK-NEXT:    %[[B:.*]] = core.min %[[S]], %[[T]]
// CHECK:         func.return %[[R]], %[[B]]
func.func @clamps(%x : tensor<20xf32>) -> (tensor<20xf32>, tensor<20xf32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %six = core.constant dense<6.0> : tensor<f32>
  %two = core.constant dense<2.0> : tensor<f32>
  %a = core.max %x, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %b = core.max %z, %a : (tensor<f32>, tensor<20xf32>) -> tensor<20xf32>
  %c = core.min %x, %six : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %d = core.max %c, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %e = core.min %d, %two : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  func.return %b, %e : tensor<20xf32>, tensor<20xf32>
}

// -----

// Bounds that leave nothing between them: max(min(max(x, -1), 1), 5) is 5, and 1 stays below 5.
// CHECK-LABEL: @disjoint_clamps
// CHECK:         %[[A:.*]] = core.constant dense<5.0>
// CHECK-NEXT:    %[[B:.*]] = core.max %x, %[[A]]
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<5.0>
// CHECK-NEXT:    core.min %[[B]], %[[C]]
// CHECK-NEXT:    func.return
func.func @disjoint_clamps(%x : tensor<20xf32>) -> tensor<20xf32> {
  %m = core.constant dense<-1.0> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %five = core.constant dense<5.0> : tensor<f32>
  %a = core.max %x, %m : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %b = core.min %a, %one : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %c = core.max %b, %five : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  func.return %c : tensor<20xf32>
}

// -----

// The inner one has another use; numbers of a row and of a column would become those of a matrix.
// CHECK-LABEL: @no_clamps
// CHECK:         %[[A:.*]] = core.max %x
// CHECK-NEXT:    core.max %[[A]]
// CHECK-NEXT:    %[[E:.*]] = core.max %x
// CHECK-NEXT:    core.max %[[E]]
func.func @no_clamps(%x : tensor<3x20xf32>) -> (tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %r = core.constant dense<2.0> : tensor<20xf32>
  %q = core.constant dense<3.0> : tensor<3x1xf32>
  %a = core.max %x, %z : (tensor<3x20xf32>, tensor<f32>) -> tensor<3x20xf32>
  %b = core.max %a, %one : (tensor<3x20xf32>, tensor<f32>) -> tensor<3x20xf32>
  %e = core.max %x, %r : (tensor<3x20xf32>, tensor<20xf32>) -> tensor<3x20xf32>
  %f = core.max %e, %q : (tensor<3x20xf32>, tensor<3x1xf32>) -> tensor<3x20xf32>
  func.return %a, %b, %f : tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>
}

// -----

// What is not negative needs no lower bound; bytes need none of 0.
// CHECK-LABEL: @not_negative
// CHECK:         %[[S:.*]] = core.sigmoid %x
// CHECK:         %[[E:.*]] = core.exp %x
// CHECK:         %[[M:.*]] = core.rectify %x
// CHECK-NEXT:    func.return %[[S]], %[[E]], %[[M]], %k
func.func @not_negative(%x : tensor<20xf32>, %k : tensor<2xui8>) -> (tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<2xui8>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %zk = core.constant dense<0> : tensor<ui8>
  %a = core.sigmoid %x : (tensor<20xf32>) -> tensor<20xf32>
  %b = core.max %a, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %c = core.exp %x : (tensor<20xf32>) -> tensor<20xf32>
  %d = core.abs %c : (tensor<20xf32>) -> tensor<20xf32>
  %e = core.rectify %x : (tensor<20xf32>) -> tensor<20xf32>
  %f = core.rectify %e : (tensor<20xf32>) -> tensor<20xf32>
  %g = core.max %k, %zk : (tensor<2xui8>, tensor<ui8>) -> tensor<2xui8>
  func.return %b, %d, %f, %g : tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<2xui8>
}

// -----

// Squares of integers, which wrap, may be negative; rectify of what is at most 0 is no constant.
// CHECK-LABEL: @may_be_negative
// CHECK:         core.min
// CHECK:         core.rectify
// CHECK:         core.max
// CHECK:         core.max %x, %y
// CHECK:         core.max
func.func @may_be_negative(%x : tensor<20xf32>, %y : tensor<20xf32>, %k : tensor<2xi32>) -> (tensor<20xf32>, tensor<2xi32>, tensor<20xf32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %zk = core.constant dense<0> : tensor<i32>
  %a = core.min %x, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %b = core.rectify %a : (tensor<20xf32>) -> tensor<20xf32>
  %c = core.mul %k, %k : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %d = core.max %c, %zk : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %e = core.max %x, %y : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
  %f = core.max %e, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  func.return %b, %d, %f : tensor<20xf32>, tensor<2xi32>, tensor<20xf32>
}

// -----

// 200 - (x - 100) is 44 - x in bytes.
// CHECK-LABEL: @integer_sums
// CHECK:         %[[A:.*]] = core.constant dense<{{\[}}44, 44]>
// CHECK-NEXT:    core.sub %[[A]], %x
// CHECK:         %[[B:.*]] = core.constant dense<{{\[}}100, 100]>
// CHECK-NEXT:    core.add %x, %[[B]]
// CHECK:         %[[C:.*]] = core.constant dense<156>
// CHECK-NEXT:    core.sub %[[C]], %x
// CHECK-NEXT:    func.return
func.func @integer_sums(%x : tensor<2xui8>) -> (tensor<2xui8>, tensor<2xui8>, tensor<2xui8>) {
  %a = core.constant dense<100> : tensor<ui8>
  %b = core.constant dense<200> : tensor<2xui8>
  %c = core.sub %x, %a : (tensor<2xui8>, tensor<ui8>) -> tensor<2xui8>
  %d = core.sub %b, %c : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %e = core.sub %a, %x : (tensor<ui8>, tensor<2xui8>) -> tensor<2xui8>
  %f = core.sub %b, %e : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %g = core.add %x, %a : (tensor<2xui8>, tensor<ui8>) -> tensor<2xui8>
  %h = core.neg %g : (tensor<2xui8>) -> tensor<2xui8>
  func.return %d, %f, %h : tensor<2xui8>, tensor<2xui8>, tensor<2xui8>
}

// -----

// Shifts by 3 and 6 leave no bit of a byte; of an i32 they are one by 9. One to the left and one to
// the right are no shift.
// CHECK-LABEL: @shifts
// CHECK:         core.constant dense<8> : tensor<ui8>
// CHECK-NEXT:    core.shl %x
// CHECK:         core.constant dense<9> : tensor<i32>
// CHECK-NEXT:    core.shr %k
// CHECK:         core.shl %k
// CHECK:         core.shr
// CHECK-NEXT:    func.return
func.func @shifts(%x : tensor<2xui8>, %k : tensor<2xi32>) -> (tensor<2xui8>, tensor<2xi32>, tensor<2xi32>) {
  %a = core.constant dense<3> : tensor<ui8>
  %b = core.constant dense<6> : tensor<ui8>
  %c = core.shl %x, %a : (tensor<2xui8>, tensor<ui8>) -> tensor<2xui8>
  %d = core.shl %c, %b : (tensor<2xui8>, tensor<ui8>) -> tensor<2xui8>
  %p = core.constant dense<3> : tensor<i32>
  %q = core.constant dense<6> : tensor<i32>
  %r = core.shr %k, %p : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %s = core.shr %r, %q : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %t = core.shl %k, %p : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %u = core.shr %t, %q : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  func.return %d, %s, %u : tensor<2xui8>, tensor<2xi32>, tensor<2xi32>
}

// -----

// CHECK-LABEL: @absorbed
// CHECK-NOT:     core.{{mul|sub|and|xor|compare}}
// CHECK:         func.return
func.func @absorbed(%x : tensor<2xi32>, %b : tensor<2xi1>) -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi1>, tensor<2xi1>) {
  %z = core.constant dense<0> : tensor<i32>
  %c = core.mul %x, %z : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %d = core.sub %x, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %e = core.xor %x, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %n = core.not %b : (tensor<2xi1>) -> tensor<2xi1>
  %f = core.and %n, %b : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  %g = core.compare le %x, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  func.return %c, %d, %e, %f, %g : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi1>, tensor<2xi1>
}

// -----

// Infinities and NaN make NaN; 0 << 2 is 0, but 1 << 0 and x / 0 are themselves something.
// CHECK-LABEL: @not_absorbed
// CHECK:         core.mul
// CHECK:         core.sub
// CHECK:         core.compare
// CHECK:         core.shl
func.func @not_absorbed(%x : tensor<20xf32>, %k : tensor<2xi32>) -> (tensor<20xf32>, tensor<20xf32>, tensor<20xi1>, tensor<2xi32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %one = core.constant dense<1> : tensor<i32>
  %c = core.mul %x, %z : (tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
  %d = core.sub %x, %x : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
  %e = core.compare eq %x, %x : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xi1>
  %f = core.shl %one, %k : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
  func.return %c, %d, %e, %f : tensor<20xf32>, tensor<20xf32>, tensor<20xi1>, tensor<2xi32>
}

// -----

// A softmax has no sign to drop; its logarithm does.
// CHECK-LABEL: @signs_of_softmax
// CHECK-NEXT:    %[[P:.*]] = core.softmax %x axis 0 :
// CHECK-NEXT:    %[[L:.*]] = core.softmax %x axis 0 {log = true}
// CHECK:         %[[A:.*]] = core.abs %[[L]]
// CHECK:         %[[M:.*]] = core.max %[[L]], %{{.*}}
// CHECK-NEXT:    func.return %[[P]], %[[A]], %[[M]]
func.func @signs_of_softmax(%x : tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
  %p = core.softmax %x axis 0 : (tensor<9xf32>) -> tensor<9xf32>
  %l = core.softmax %x axis 0 {log = true} : (tensor<9xf32>) -> tensor<9xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %a = core.abs %p : (tensor<9xf32>) -> tensor<9xf32>
  %b = core.abs %l : (tensor<9xf32>) -> tensor<9xf32>
  %m = core.max %l, %zero : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  func.return %a, %b, %m : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
}
