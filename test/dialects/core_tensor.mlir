// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @shape
// CHECK-NEXT:    %a = core.reshape %x [2, n * 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<2x?xf32, #core.tensor<dims = [2, n * 2]>>
// CHECK-NEXT:    %b = core.transpose %x [1, 0] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4x?xf32, #core.tensor<dims = [4, n]>>
// CHECK-NEXT:    %c = core.broadcast %x [3, n, 4] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<3x?x4xf32, #core.tensor<dims = [3, n, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @shape(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %a = core.reshape %x [2, n * 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<2x?xf32, #core.tensor<dims = [2, n * 2]>>
  %b = core.transpose %x [1, 0] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4x?xf32, #core.tensor<dims = [4, n]>>
  %c = core.broadcast %x [3, n, 4] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<3x?x4xf32, #core.tensor<dims = [3, n, 4]>>
  func.return
}

// CHECK-LABEL: func.func @parts
// CHECK-NEXT:    %a = core.slice %x [n - 1, 0] [n, 2] [-1, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
// CHECK-NEXT:    %b = core.pad constant %x, %v [1, 0] [n, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<f32>) -> tensor<?x6xf32, #core.tensor<dims = [n * 2 + 1, 6]>>
// CHECK-NEXT:    %c = core.pad reflect %x [1, 0] [0, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x6xf32, #core.tensor<dims = [n + 1, 6]>>
// CHECK-NEXT:    %d = core.concat %x, %x axis 0 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n * 2, 4]>>
// CHECK-NEXT:    %e, %f = core.split %x axis 0 sizes [n - 1, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> (tensor<?x4xf32, #core.tensor<dims = [n - 1, 4]>>, tensor<1x4xf32>)
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @parts(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %v : tensor<f32>) {
  %a = core.slice %x [n - 1, 0] [n, 2] [-1, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  %b = core.pad constant %x, %v [1, 0] [n, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<f32>) -> tensor<?x6xf32, #core.tensor<dims = [n * 2 + 1, 6]>>
  %c = core.pad reflect %x [1, 0] [0, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x6xf32, #core.tensor<dims = [n + 1, 6]>>
  %d = core.concat %x, %x axis 0 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n * 2, 4]>>
  %e, %f = core.split %x axis 0 sizes [n - 1, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> (tensor<?x4xf32, #core.tensor<dims = [n - 1, 4]>>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @gather
// CHECK-NEXT:    %a = core.gather %x, %i axis 1 : (tensor<3x4xf32>, tensor<5xi64>) -> tensor<3x5xf32>
// CHECK-NEXT:    %b = core.gather_elements %x, %j axis 1 : (tensor<3x4xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
// CHECK-NEXT:    %c = core.gather_nd %x, %k batch_dims 0 : (tensor<3x4xf32>, tensor<5x2xi64>) -> tensor<5xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @gather(%x : tensor<3x4xf32>, %i : tensor<5xi64>, %j : tensor<3x2xi32>, %k : tensor<5x2xi64>) {
  %a = core.gather %x, %i axis 1 : (tensor<3x4xf32>, tensor<5xi64>) -> tensor<3x5xf32>
  %b = core.gather_elements %x, %j axis 1 : (tensor<3x4xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
  %c = core.gather_nd %x, %k batch_dims 0 : (tensor<3x4xf32>, tensor<5x2xi64>) -> tensor<5xf32>
  func.return
}

// CHECK-LABEL: func.func @scatter
// CHECK-NEXT:    %a = core.scatter_elements add %x, %j, %u axis 1 : (tensor<3x4xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:    %b = core.scatter_nd none %x, %k, %v : (tensor<3x4xf32>, tensor<5x1xi64>, tensor<5x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @scatter(%x : tensor<3x4xf32>, %j : tensor<3x2xi32>, %u : tensor<3x2xf32>, %k : tensor<5x1xi64>, %v : tensor<5x4xf32>) {
  %a = core.scatter_elements add %x, %j, %u axis 1 : (tensor<3x4xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = core.scatter_nd none %x, %k, %v : (tensor<3x4xf32>, tensor<5x1xi64>, tensor<5x4xf32>) -> tensor<3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @selection
// CHECK-NEXT:    %a, %b = core.top_k %x [min(3, n)] axis 0 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> (tensor<?x4xf32, #core.tensor<dims = [min(3, n), 4]>>, tensor<?x4xi64, #core.tensor<dims = [min(3, n), 4]>>)
// CHECK-NEXT:    %c = core.count_nonzero %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<i64>
// CHECK-NEXT:    core.bind_symbols %c ["u0"] : tensor<i64>
// CHECK-NEXT:    %d = core.nonzero %x [u0] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<2x?xi64, #core.tensor<dims = [2, u0]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @selection(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %a, %b = core.top_k %x [min(3, n)] axis 0 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> (tensor<?x4xf32, #core.tensor<dims = [min(3, n), 4]>>, tensor<?x4xi64, #core.tensor<dims = [min(3, n), 4]>>)
  %c = core.count_nonzero %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<i64>
  core.bind_symbols %c ["u0"] : tensor<i64>
  %d = core.nonzero %x [u0] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<2x?xi64, #core.tensor<dims = [2, u0]>>
  func.return
}

// CHECK-LABEL: func.func @channel_shuffle
// CHECK-NEXT:    %y = core.channel_shuffle %x groups 2 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @channel_shuffle(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %y = core.channel_shuffle %x groups 2 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  func.return
}

// CHECK-LABEL: func.func @suppress
// CHECK-NEXT:    %k = core.suppress %a, %b, %m, %s {most = #core.dims<[min(5, n)]>, border = 1.000000e+00 : f64, decay = 5.000000e-01 : f64, must_meet, strict} : (tensor<2x?xi1, #core.tensor<dims = [2, n]>>, tensor<2x?x4xf32, #core.tensor<dims = [2, n, 4]>>, tensor<f32>, tensor<2x?xi8, #core.tensor<dims = [2, n]>>) -> tensor<2x?xi1, #core.tensor<dims = [2, n]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @suppress(%a : tensor<2x?xi1, #core.tensor<dims = [2, n]>>, %b : tensor<2x?x4xf32, #core.tensor<dims = [2, n, 4]>>, %m : tensor<f32>, %s : tensor<2x?xi8, #core.tensor<dims = [2, n]>>) {
  %k = core.suppress %a, %b, %m, %s {most = #core.dims<[min(5, n)]>, border = 1.0 : f64, decay = 0.5 : f64, must_meet, strict} : (tensor<2x?xi1, #core.tensor<dims = [2, n]>>, tensor<2x?x4xf32, #core.tensor<dims = [2, n, 4]>>, tensor<f32>, tensor<2x?xi8, #core.tensor<dims = [2, n]>>) -> tensor<2x?xi1, #core.tensor<dims = [2, n]>>
  func.return
}
