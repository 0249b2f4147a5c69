// RUN: opt-tool %s --pass-pipeline=loop-to-scan,dce --split-input-file --check-each | filecheck %s

// Slice k is read, and slice k is written: what y held before does not matter.
// CHECK-LABEL: func.func @main
// CHECK:         %[[H:.+]], %[[S:.+]] = core.loop trip %n : tensor<i64> carry %h : tensor<2xf32>
// CHECK-SAME:        -> tensor<2xf32>, tensor<4x2xf32> {
// CHECK:           %[[P:.+]] = core.slice %x [k, 0] [1, 2] [1, 1]
// CHECK:           %[[R:.+]] = core.reshape %[[P]] [2]
// CHECK:           %[[W:.+]] = core.add %{{.+}}, %[[R]]
// CHECK-NEXT:      core.yield %[[W]], %[[W]]
// CHECK:         } {iteration = "k", count = "u0"}
// CHECK-NEXT:    func.return %[[H]], %[[S]]
func.func @main(%x : tensor<4x2xf32>, %h : tensor<2xf32>, %y : tensor<4x2xf32>)
    -> (tensor<2xf32>, tensor<4x2xf32>) {
  %n = core.constant dense<4> : tensor<i64>
  %r, %s = core.loop trip %n : tensor<i64> carry %h, %y : tensor<2xf32>, tensor<4x2xf32>
      -> tensor<2xf32>, tensor<4x2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>, %t : tensor<4x2xf32>):
    %k = core.from_dims [k] shape [] : tensor<i64>
    %row = core.gather %x, %k axis 0 : (tensor<4x2xf32>, tensor<i64>) -> tensor<2xf32>
    %w = core.add %v, %row : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %u = core.reshape %w [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
    %at = core.reshape %k [1, 1] : (tensor<i64>) -> tensor<1x1xi64>
    %z = core.scatter_nd none %t, %at, %u
        : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    core.yield %w, %z : tensor<2xf32>, tensor<4x2xf32>
  } {iteration = "k"}
  func.return %r, %s : tensor<2xf32>, tensor<4x2xf32>
}

// -----

// From the end, along another dimension, and with an offset; the last index is 5 of 6. An output
// after one that stays, so that results change places; a scan output that is there stays the first.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %[[S:.+]], %[[Y:.+]] = core.loop
// CHECK:           core.slice %x [0, -k + 3] [2, 1] [1, 1]
// CHECK:           core.slice %x [0, k + 2] [2, 1] [1, 1]
// CHECK:         func.return %[[Y]], %[[A]], %[[S]]
func.func @main(%x : tensor<2x6xf32>, %a : tensor<2xf32>, %y : tensor<4x2xf32>)
    -> (tensor<4x2xf32>, tensor<2xf32>, tensor<4x2xf32>) {
  %n = core.constant dense<4> : tensor<i64>
  %s, %r, %q = core.loop trip %n : tensor<i64> carry %y, %a : tensor<4x2xf32>, tensor<2xf32>
      -> tensor<4x2xf32>, tensor<2xf32>, tensor<4x2xf32> {
  ^bb0(%i : tensor<i64>, %t : tensor<4x2xf32>, %v : tensor<2xf32>):
    %b = core.from_dims [3 - k] shape [] : tensor<i64>
    %c = core.from_dims [k + 2] shape [1] : tensor<1xi64>
    %p = core.gather %x, %b axis 1 : (tensor<2x6xf32>, tensor<i64>) -> tensor<2xf32>
    %o = core.gather %x, %c axis 1 : (tensor<2x6xf32>, tensor<1xi64>) -> tensor<2x1xf32>
    %l = core.reshape %o [2] : (tensor<2x1xf32>) -> tensor<2xf32>
    %w = core.add %v, %p : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %u = core.reshape %l [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
    %at = core.from_dims [k] shape [1, 1] : tensor<1x1xi64>
    %z = core.scatter_nd none %t, %at, %u
        : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    core.yield %z, %w, %w : tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>
  } {iteration = "k", count = "c"}
  func.return %s, %r, %q : tensor<4x2xf32>, tensor<2xf32>, tensor<4x2xf32>
}

// -----

// The nearest miss: index 4 of 4 would be an error, so it has to stay one. The limit of the other
// gather's loop is what it is the minimum of.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.gather %x
// CHECK:           core.slice %x [j, 0]
func.func @main(%x : tensor<4x2xf32>, %h : tensor<2xf32>, %m : tensor<i32>) -> tensor<2xf32> {
  %four = core.constant dense<4> : tensor<i64>
  %zero = core.constant dense<0> : tensor<i64>
  %long = core.cast %m to i64 : (tensor<i32>) -> tensor<i64>
  %n = core.min %four, %long : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %none = core.min %n, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %s = core.loop trip %none : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
    ^bb1(%p : tensor<i64>, %q : tensor<2xf32>):
      %k = core.from_dims [j + 1] shape [] : tensor<i64>
      %row = core.gather %x, %k axis 0 : (tensor<4x2xf32>, tensor<i64>) -> tensor<2xf32>
      core.yield %row : tensor<2xf32>
    }
    %l = core.from_dims [j] shape [] : tensor<i64>
    %other = core.gather %x, %l axis 0 : (tensor<4x2xf32>, tensor<i64>) -> tensor<2xf32>
    %w = core.add %s, %other : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %w : tensor<2xf32>
  } {iteration = "j"}
  func.return %r : tensor<2xf32>
}

// -----

// A difference that wraps around is no limit: -2^63 - 1 is the greatest number.
// CHECK-LABEL: func.func @main
// CHECK:           core.gather %x
func.func @main(%x : tensor<4x2xf32>, %h : tensor<2xf32>, %m : tensor<i64>) -> tensor<2xf32> {
  %five = core.constant dense<5> : tensor<i64>
  %one = core.constant dense<1> : tensor<i64>
  %least = core.min %five, %m : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %n = core.sub %least, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %l = core.from_dims [j] shape [] : tensor<i64>
    %other = core.gather %x, %l axis 0 : (tensor<4x2xf32>, tensor<i64>) -> tensor<2xf32>
    %w = core.add %v, %other : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %w : tensor<2xf32>
  } {iteration = "j"}
  func.return %r : tensor<2xf32>
}

// -----

// Outputs that stay: the first of five slices is not written; the second is read in the loop; the
// third is written from the end; to the fourth something is added.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop trip %{{.+}} : tensor<i64> carry %a, %b, %b, %b
// CHECK-COUNT-4:   core.scatter_nd
func.func @main(%x : tensor<1x2xf32>, %a : tensor<5x2xf32>, %b : tensor<4x2xf32>)
    -> (tensor<5x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %n = core.constant dense<4> : tensor<i64>
  %r:4 = core.loop trip %n : tensor<i64> carry %a, %b, %b, %b
      : tensor<5x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
      -> tensor<5x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32> {
  ^bb0(%i : tensor<i64>, %p : tensor<5x2xf32>, %q : tensor<4x2xf32>, %s : tensor<4x2xf32>,
      %t : tensor<4x2xf32>):
    %k = core.from_dims [k] shape [1, 1] : tensor<1x1xi64>
    %m = core.from_dims [3 - k] shape [1, 1] : tensor<1x1xi64>
    %pp = core.scatter_nd none %p, %k, %x
        : (tensor<5x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<5x2xf32>
    %old = core.slice %q [2, 0] [1, 2] [1, 1] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %new = core.add %old, %x : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %qq = core.scatter_nd none %q, %k, %new
        : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    %ss = core.scatter_nd none %s, %m, %x
        : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    %tt = core.scatter_nd add %t, %k, %x
        : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    core.yield %pp, %qq, %ss, %tt
        : tensor<5x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
  } {iteration = "k"}
  func.return %r#0, %r#1, %r#2, %r#3
      : tensor<5x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// A loop that may end before leaves the slices behind as they were.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.scatter_nd
func.func @main(%x : tensor<1x2xf32>, %b : tensor<4x2xf32>, %c : tensor<i1>) -> tensor<4x2xf32> {
  %n = core.constant dense<4> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %b : tensor<4x2xf32>
      -> tensor<4x2xf32> {
  ^bb0(%i : tensor<i64>, %p : tensor<4x2xf32>):
    %k = core.from_dims [k] shape [1, 1] : tensor<1x1xi64>
    %pp = core.scatter_nd none %p, %k, %x
        : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    core.yield %c, %pp : tensor<i1>, tensor<4x2xf32>
  } {iteration = "k"}
  func.return %r : tensor<4x2xf32>
}

// -----

// Of sizes that are not numbers one is known to be the other.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.slice %x [k, 0]
// CHECK:           core.slice %x [-k + n - 1, 0]
// CHECK-NOT:       core.scatter_nd
func.func @main(%x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>,
                %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>)
    -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {
  %n = core.from_dims [n] shape [] : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
      -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {
  ^bb0(%i : tensor<i64>, %t : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>):
    %k = core.from_dims [k] shape [1] : tensor<1xi64>
    %l = core.from_dims [n - 1 - k] shape [1] : tensor<1xi64>
    %p = core.gather %x, %k axis 0
        : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<1xi64>) -> tensor<1x2xf32>
    %q = core.gather %x, %l axis 0
        : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<1xi64>) -> tensor<1x2xf32>
    %w = core.sub %p, %q : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %at = core.reshape %k [1, 1] : (tensor<1xi64>) -> tensor<1x1xi64>
    %z = core.scatter_nd none %t, %at, %w
        : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<1x1xi64>, tensor<1x2xf32>)
        -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
    core.yield %z : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  } {iteration = "k"}
  func.return %r : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
}

// -----

// A cast changes nothing of an index that fits, as all of 100 do; of 200 not all do.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.slice %x [k]
// CHECK-NEXT:      core.reshape
// CHECK-NEXT:      core.gather %y
func.func @main(%x : tensor<100xf32>, %y : tensor<200xf32>, %h : tensor<f32>) -> tensor<f32> {
  %n = core.constant dense<100> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<f32> -> tensor<f32> {
  ^bb0(%i : tensor<i64>, %v : tensor<f32>):
    %k = core.from_dims [k] shape [] : tensor<i64>
    %j = core.cast %k to i8 : (tensor<i64>) -> tensor<i8>
    %a = core.gather %x, %j axis 0 : (tensor<100xf32>, tensor<i8>) -> tensor<f32>
    %b = core.gather %y, %j axis 0 : (tensor<200xf32>, tensor<i8>) -> tensor<f32>
    %c = core.sub %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %w = core.add %v, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %w : tensor<f32>
  } {iteration = "k"}
  func.return %r : tensor<f32>
}

// -----

// Where a trip count is the size of the input, cast, and no less than none, or less than that; but
// not where it is no less than 5: the input may have 3. Nor is it known after 1 has been added.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.slice %x [k, 0]
// CHECK:         core.loop
// CHECK:           core.gather %x
// CHECK:         core.loop
// CHECK:           core.gather %x
func.func @main(%x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, %m : tensor<i32>,
                %h : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %n = core.from_dims [n] shape [] : tensor<i64>
  %s = core.cast %n to i32 : (tensor<i64>) -> tensor<i32>
  %some = core.min %m, %s : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %c = core.cast %some to i64 : (tensor<i32>) -> tensor<i64>
  %zero = core.constant dense<0> : tensor<i64>
  %one = core.constant dense<1> : tensor<i64>
  %five = core.constant dense<5> : tensor<i64>
  %ten = core.constant dense<10> : tensor<i64>
  %p = core.max %c, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %t = core.min %ten, %p : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %q = core.max %c, %five : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %o = core.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %u = core.min %o, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %e = core.min %q, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %a = core.loop trip %t : tensor<i64> carry %h : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %k = core.from_dims [k] shape [] : tensor<i64>
    %r = core.gather %x, %k axis 0
        : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<i64>) -> tensor<2xf32>
    %w = core.add %v, %r : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %w : tensor<2xf32>
  } {iteration = "k"}
  %b = core.loop trip %q : tensor<i64> carry %h : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %inner = core.loop trip %e : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
    ^bb1(%j : tensor<i64>, %z : tensor<2xf32>):
      %k = core.from_dims [l] shape [] : tensor<i64>
      %r = core.gather %x, %k axis 0
          : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<i64>) -> tensor<2xf32>
      core.yield %r : tensor<2xf32>
    }
    core.yield %inner : tensor<2xf32>
  } {iteration = "l"}
  %d = core.loop trip %o : tensor<i64> carry %h : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %inner = core.loop trip %u : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
    ^bb1(%j : tensor<i64>, %z : tensor<2xf32>):
      %k = core.from_dims [m] shape [] : tensor<i64>
      %r = core.gather %x, %k axis 0
          : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<i64>) -> tensor<2xf32>
      core.yield %r : tensor<2xf32>
    }
    core.yield %inner : tensor<2xf32>
  } {iteration = "m"}
  func.return %a, %b, %d : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
