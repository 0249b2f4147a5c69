// RUN: opt-tool %s --pass-pipeline=fast-math --split-input-file | filecheck %s

// Columns are divided by numbers of their own.
// CHECK-LABEL: @quotient
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<[0.333{{[0-9]*}}, 0.200{{[0-9]*}}]> : tensor<2xf32>
// CHECK-NEXT:    %{{.*}} = core.mul %x, %[[C]]
func.func @quotient(%x : tensor<3x2xf32>) -> tensor<3x2xf32> {
  %c = core.constant dense<[3.0, 5.0]> : tensor<2xf32>
  %y = core.div %x, %c : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Numbers without a normal reciprocal, values, integers and half precision: none is touched.
// CHECK-LABEL: @other_quotients
// CHECK-COUNT-6: core.div
// CHECK:         func.return
func.func @other_quotients(%x : tensor<2xf32>, %i : tensor<2xi32>, %h : tensor<2xf16>)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf16>) {
  %zero = core.constant dense<[3.0, 0.0]> : tensor<2xf32>
  %tiny = core.constant dense<1.0e-39> : tensor<f32>
  %large = core.constant dense<3.0e+38> : tensor<f32>
  %two = core.constant dense<3> : tensor<i32>
  %half = core.constant dense<3.0> : tensor<f16>
  %a = core.div %x, %zero : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = core.div %x, %tiny : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %c = core.div %x, %large : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %d = core.div %tiny, %x : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %e = core.div %i, %two : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %f = core.div %h, %half : (tensor<2xf16>, tensor<f16>) -> tensor<2xf16>
  func.return %a, %b, %c, %d, %e, %f
      : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf16>
}

// -----

// (x - 5 + 2) - 7 is x + -10: with the signs confused it is x + 10, x, or x + -4.
// CHECK-LABEL: @sums
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<-10.0> : tensor<f32>
// CHECK-NEXT:    %{{.*}} = core.add %x, %[[C]]
// CHECK-NEXT:    func.return
func.func @sums(%x : tensor<2xf32>) -> tensor<2xf32> {
  %a = core.constant dense<5.0> : tensor<f32>
  %b = core.constant dense<2.0> : tensor<f32>
  %c = core.constant dense<7.0> : tensor<f32>
  %r = core.sub %x, %a : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %s = core.add %r, %b : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %t = core.sub %s, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %t : tensor<2xf32>
}

// -----

// A row and a column of factors are a matrix. Factors that overflow stay, and so does a sum that
// something else uses; (2 - x) + 2 is 4 - x.
// CHECK-LABEL: @factors
// CHECK-NEXT:    %[[C:.*]] = core.constant {{.*}}6.0, 8.0], [9.0, 12.0{{.*}} : tensor<2x2xf32>
// CHECK:         core.mul %x, %[[C]]
// CHECK-COUNT-2: core.mul
// CHECK:         %[[F:.*]] = core.constant dense<4.0>
// CHECK-NEXT:    core.sub %[[F]], %x
// CHECK:         core.add
// CHECK:         core.add
// CHECK-NEXT:    func.return
func.func @factors(%x : tensor<2x2xf32>)
    -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %row = core.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %column = core.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %a = core.mul %x, %row : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %b = core.mul %a, %column : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %large = core.constant dense<1.0e+30> : tensor<f32>
  %c = core.mul %x, %large : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %d = core.mul %c, %large : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %two = core.constant dense<2.0> : tensor<f32>
  %e = core.sub %two, %x : (tensor<f32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %f = core.add %e, %two : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %g = core.add %x, %two : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %h = core.add %g, %two : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  func.return %b, %d, %f, %g, %h
      : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @special
// CHECK-NEXT:    %[[B:.*]] = core.constant {{.*}}0.0, 0.0, 0.0], [0.0, 0.0, 0.0{{.*}} : tensor<2x3xf32>
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<[0.0, 0.0, 0.0]> : tensor<3xf32>
// CHECK-NEXT:    %[[D:.*]] = core.constant dense<[0.0, 0.0, 0.0]> : tensor<3xf32>
// CHECK-NEXT:    %[[E:.*]] = core.constant dense<[1.0, 1.0, 1.0]> : tensor<3xf32>
// CHECK-NEXT:    func.return %x, %[[B]], %[[C]], %[[D]], %[[E]]
func.func @special(%x : tensor<3xf32>)
    -> (tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %zs = core.constant dense<-0.0> : tensor<2x1xf32>
  %a = core.add %x, %z : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %b = core.mul %x, %zs : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %c = core.div %z, %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %d = core.sub %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %e = core.div %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %a, %b, %c, %d, %e
      : tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// A sum with zeros that makes x larger, 0 - x, sizes that are not known, and 0 of integers.
// CHECK-LABEL: @not_special
// CHECK:         core.add
// CHECK:         core.sub
// CHECK:         core.mul
// CHECK:         core.mul
func.func @not_special(%x : tensor<3xf32>, %y : tensor<?xf32, #core.tensor<dims = [n]>>, %i : tensor<3xi32>)
    -> (tensor<2x3xf32>, tensor<3xf32>, tensor<?xf32, #core.tensor<dims = [n]>>, tensor<3xi32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %zs = core.constant dense<0.0> : tensor<2x1xf32>
  %zi = core.constant dense<0> : tensor<i32>
  %a = core.add %x, %zs : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %b = core.sub %z, %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %c = core.mul %y, %z : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<f32>)
      -> tensor<?xf32, #core.tensor<dims = [n]>>
  %d = core.mul %i, %zi : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  func.return %a, %b, %c, %d : tensor<2x3xf32>, tensor<3xf32>,
      tensor<?xf32, #core.tensor<dims = [n]>>, tensor<3xi32>
}

// -----

// What an op undoes: y + (x - y) too.
// CHECK-LABEL: @inverse
// CHECK-NEXT:    func.return %x, %x, %x, %x, %x, %x
func.func @inverse(%x : tensor<3xf32>, %y : tensor<f32>)
    -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %log = core.log %x : (tensor<3xf32>) -> tensor<3xf32>
  %a = core.exp %log : (tensor<3xf32>) -> tensor<3xf32>
  %exp = core.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %b = core.log %exp : (tensor<3xf32>) -> tensor<3xf32>
  %product = core.mul %y, %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %c = core.div %product, %y : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %quotient = core.div %x, %y : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %d = core.mul %quotient, %y : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %sum = core.add %x, %y : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %e = core.sub %sum, %y : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %difference = core.sub %x, %y : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %f = core.add %y, %difference : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %a, %b, %c, %d, %e, %f
      : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// y - (x + y), (y - x) + y, y / (x * y), (y / x) * y, and a difference that is smaller than the sum.
// CHECK-LABEL: @not_inverse
// CHECK:         core.add
// CHECK-NEXT:    core.sub
// CHECK-NEXT:    core.sub
// CHECK-NEXT:    core.add
// CHECK-NEXT:    core.mul
// CHECK-NEXT:    core.div
// CHECK-NEXT:    core.div
// CHECK-NEXT:    core.mul
// CHECK-NEXT:    core.add
// CHECK-NEXT:    core.sub
func.func @not_inverse(%x : tensor<3xf32>, %y : tensor<3xf32>, %z : tensor<2x3xf32>)
    -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) {
  %sum = core.add %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %a = core.sub %y, %sum : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %difference = core.sub %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %b = core.add %difference, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %product = core.mul %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %c = core.div %y, %product : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %quotient = core.div %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %d = core.mul %quotient, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %wide = core.add %x, %z : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = core.sub %wide, %z : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %a, %b, %c, %d, %e
      : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>
}

// -----

// The root of a square has no sign; the roots of two values are no square.
// CHECK-LABEL: @roots
// CHECK-NEXT:    %[[A:.*]] = core.abs %x
// CHECK:         %[[P:.*]] = core.mul
// CHECK-NEXT:    func.return %x, %[[A]], %[[P]]
func.func @roots(%x : tensor<3xf32>, %y : tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %square = core.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %b = core.sqrt %square : (tensor<3xf32>) -> tensor<3xf32>
  %r = core.sqrt %x : (tensor<3xf32>) -> tensor<3xf32>
  %s = core.sqrt %y : (tensor<3xf32>) -> tensor<3xf32>
  %a = core.mul %r, %r : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %c = core.mul %r, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %a, %b, %c : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// A quotient is the exponential of the difference; what something else uses is computed anyway.
// CHECK-LABEL: @exponentials
// CHECK-NEXT:    %[[D:.*]] = core.sub %x, %y
// CHECK-NEXT:    %[[A:.*]] = core.exp %[[D]]
// CHECK:         %[[B:.*]] = core.mul
// CHECK-NEXT:    func.return %[[A]], %[[B]]
func.func @exponentials(%x : tensor<3xf32>, %y : tensor<2x1xf32>, %z : tensor<3xf32>)
    -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %p = core.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %q = core.exp %y : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %a = core.div %p, %q : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %r = core.exp %z : (tensor<3xf32>) -> tensor<3xf32>
  %s = core.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %b = core.mul %r, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %a, %b, %r : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// CHECK-LABEL: @powers
// CHECK:         %[[A:.*]] = core.sqrt %x
// CHECK-NEXT:    %[[R:.*]] = core.sqrt %x
// CHECK-NEXT:    %[[O:.*]] = core.constant dense<1.0> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = core.div %[[O]], %[[R]]
// CHECK-NEXT:    %[[P:.*]] = core.constant dense<1.0> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = core.div %[[P]], %x
// CHECK-NEXT:    %[[S:.*]] = core.mul %x, %x
// CHECK-NEXT:    %[[D:.*]] = core.mul %[[S]], %x
// CHECK-NEXT:    %[[E:.*]] = core.pow %x
// CHECK-NEXT:    func.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
func.func @powers(%x : tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %half = core.constant dense<0.5> : tensor<f32>
  %minus_half = core.constant dense<-0.5> : tensor<f32>
  %minus_one = core.constant dense<-1.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %third = core.constant dense<0.3> : tensor<f32>
  %a = core.pow %x, %half : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %b = core.pow %x, %minus_half : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %c = core.pow %x, %minus_one : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %d = core.pow %x, %three : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %e = core.pow %x, %third : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %a, %b, %c, %d, %e
      : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// 2 x + 3 x, x / 2 - x, and 3 x - x y, whose factors differ; x * 2 has another use in the last.
// CHECK-LABEL: @terms
// CHECK:         %[[A:.*]] = core.constant dense<5.0>
// CHECK-NEXT:    %[[B:.*]] = core.mul %x, %[[A]]
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<-0.5>
// CHECK-NEXT:    %[[D:.*]] = core.mul %x, %[[C]]
// CHECK-NEXT:    %[[E:.*]] = core.mul %y, %x
// CHECK-NEXT:    %[[F:.*]] = core.sub %[[E]], %y
// CHECK-NEXT:    %[[G:.*]] = core.mul %y
// CHECK-NEXT:    core.add %[[G]], %y
func.func @terms(%x : tensor<3xf32>, %y : tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %two = core.constant dense<2.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %a = core.mul %x, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %b = core.mul %x, %three : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %c = core.add %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %d = core.div %x, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %e = core.sub %d, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %f = core.mul %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %g = core.sub %f, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = core.mul %y, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %i = core.add %h, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %c, %e, %g, %h, %i
      : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// x z + z y is (x + y) z. Dividends, unlike divisors, are no factors; a row times z is smaller than
// the sum.
// CHECK-LABEL: @common_factor
// CHECK-NEXT:    %[[S:.*]] = core.add %x, %y
// CHECK-NEXT:    core.mul %[[S]], %z
// CHECK-NEXT:    %[[D:.*]] = core.sub %x, %y
// CHECK-NEXT:    core.div %[[D]], %z
// CHECK-NEXT:    core.div %x, %y
// CHECK-NEXT:    core.div %x, %w
// CHECK-NEXT:    core.sub
// CHECK-NEXT:    core.mul %x, %z
// CHECK-NEXT:    core.mul %r, %z
// CHECK-NEXT:    core.add
func.func @common_factor(%x : tensor<2x3xf64>, %y : tensor<2x3xf64>, %w : tensor<2x3xf64>, %z : tensor<3xf64>, %r : tensor<3xf64>)
    -> (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>) {
  %a = core.mul %x, %z : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  %b = core.mul %z, %y : (tensor<3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %c = core.add %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %d = core.div %x, %z : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  %e = core.div %y, %z : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  %f = core.sub %d, %e : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %g = core.div %x, %y : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %h = core.div %x, %w : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %i = core.sub %g, %h : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %j = core.mul %x, %z : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  %k = core.mul %r, %z : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %l = core.add %j, %k : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  func.return %c, %f, %i, %l : tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>
}

// -----

// x @ a + x @ b and a @ y - b @ y are one product each, but not x @ a + a @ x.
// CHECK-LABEL: @products
// CHECK-NEXT:    %[[A:.*]] = core.add %a, %b
// CHECK-NEXT:    core.matmul %x, %[[A]]
// CHECK-NEXT:    %[[B:.*]] = core.sub %a, %b
// CHECK-NEXT:    core.matmul %[[B]], %x
// CHECK-NEXT:    core.matmul %x, %a
// CHECK-NEXT:    core.matmul %a, %x
// CHECK-NEXT:    core.add
func.func @products(%x : tensor<3x3xf64>, %a : tensor<3x3xf64>, %b : tensor<3x3xf64>)
    -> (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) {
  %c = core.matmul %x, %a : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %d = core.matmul %x, %b : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %e = core.add %c, %d : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %f = core.matmul %a, %x : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %g = core.matmul %b, %x : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %h = core.sub %f, %g : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %i = core.matmul %x, %a : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %j = core.matmul %a, %x : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %k = core.add %i, %j : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  func.return %e, %h, %k : tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>
}

// -----

// y - (x - 2) + 3 is (y - x) + 5; 3 - broadcast(z + 2) is broadcast(1 - z), and with a column of
// numbers, the difference comes after the broadcast.
// CHECK-LABEL: @around
// CHECK:         %[[D:.*]] = core.sub %y, %x
// CHECK-NEXT:    %[[F:.*]] = core.constant dense<5.0>
// CHECK-NEXT:    core.add %[[D]], %[[F]]
// CHECK-NEXT:    %[[O:.*]] = core.constant dense<1.0>
// CHECK-NEXT:    %[[Z:.*]] = core.sub %[[O]], %z
// CHECK-NEXT:    core.broadcast %[[Z]]
// CHECK-NEXT:    %[[B:.*]] = core.broadcast %z
// CHECK-NEXT:    %[[C:.*]] = core.constant {{.*}}3.0{{.*}}4.0
// CHECK-NEXT:    core.add %[[B]], %[[C]]
func.func @around(%x : tensor<2x3xf32>, %y : tensor<2x3xf32>, %z : tensor<3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %two = core.constant dense<2.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %column = core.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %a = core.sub %x, %two : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %b = core.sub %y, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = core.add %b, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %d = core.add %z, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %e = core.broadcast %d [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %f = core.sub %three, %e : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %g = core.add %z, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %h = core.broadcast %g [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %i = core.add %h, %column : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return %c, %f, %i : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
