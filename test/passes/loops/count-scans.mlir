// RUN: opt-tool %s --pass-pipeline=count-scans,dce --split-input-file --check-each | filecheck %s

// What decides how often the loop runs is computed before it, and counted.
// CHECK-LABEL: @collect
// CHECK:         %[[N:[0-9]+]], %{{.*}} = core.loop cond %true : tensor<i1> carry %{{.*}}, %zero :
// CHECK-NOT:     core.sub
// CHECK:         core.compare
// CHECK:         core.loop trip %[[N]] : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32>, tensor<?x2xf32
// CHECK-NOT:     core.compare
// CHECK:         core.yield %w, %v : tensor<2xf32>, tensor<2xf32>
func.func @collect(%x : tensor<2xf32>, %limit : tensor<f32>) -> (tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>>) {
  %true = core.constant dense<true> : tensor<i1>
  %zero = core.constant dense<7> : tensor<i32>
  %one = core.constant dense<1> : tensor<i32>
  %max = core.constant dense<9.5> : tensor<f32>
  %low = core.min %limit, %max : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %r, %k, %s = core.loop cond %true : tensor<i1> carry %x, %zero : tensor<2xf32>, tensor<i32> -> tensor<2xf32>, tensor<i32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>, %n : tensor<i32>):
    %m = core.add %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %f = core.cast %m to f32 : (tensor<i32>) -> tensor<f32>
    %c = core.compare lt %f, %low : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %w = core.sub %v, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %c, %w, %m, %v : tensor<i1>, tensor<2xf32>, tensor<i32>, tensor<2xf32>
  } {count = "t"}
  func.return %r, %s : tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>>
}

// -----

// Nothing is collected: the loop stays.
// CHECK-LABEL: @last
// CHECK-COUNT-1: core.loop cond
// CHECK-NOT:     core.loop
func.func @last(%x : tensor<i32>) -> tensor<i32> {
  %true = core.constant dense<true> : tensor<i1>
  %one = core.constant dense<1> : tensor<i32>
  %max = core.constant dense<9> : tensor<i32>
  %r = core.loop cond %true : tensor<i1> carry %x : tensor<i32> -> tensor<i32> {
  ^bb0(%i : tensor<i64>, %n : tensor<i32>):
    %m = core.max %n, %max : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %c = core.compare lt %m, %max : (tensor<i32>, tensor<i32>) -> tensor<i1>
    core.yield %c, %m : tensor<i1>, tensor<i32>
  }
  func.return %r : tensor<i32>
}
