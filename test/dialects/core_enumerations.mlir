// RUN: opt-tool %s --parsing-diagnostics --split-input-file | filecheck %s

// A name that an enumeration does not have is an error where it stands.

// CHECK: Expected `eq`, `ne`, `lt`, `le`, `gt`, or `ge`.
func.func @compare(%x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.compare above %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  func.return
}

// -----

// CHECK: Expected `constant`, `edge`, `reflect`, or `wrap`.
func.func @pad(%x : tensor<2x3xf32>) {
  %r = core.pad mirror %x [0, 0] [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: Expected `none`, `add`, `mul`, `max`, or `min`.
func.func @scatter_elements(%x : tensor<2x3xf32>, %y : tensor<2x3xi64>, %z : tensor<2x3xf32>) {
  %r = core.scatter_elements sub %x, %y, %z axis 0 : (tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: Expected `sum`, `prod`, `max`, or `min`.
func.func @reduce(%x : tensor<2x3xf32>) {
  %r = core.reduce mean %x [0] : (tensor<2x3xf32>) -> tensor<f32>
  func.return
}

// -----

// CHECK: Expected `max`, or `min`.
func.func @arg_reduce(%x : tensor<2x3xf32>) {
  %r = core.arg_reduce sum %x axis 0 : (tensor<2x3xf32>) -> tensor<3xi64>
  func.return
}

// -----

// CHECK: Expected `sum`, or `prod`.
func.func @cumulative(%x : tensor<2x3xf32>) {
  %r = core.cumulative max %x axis 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: Expected `max`, `sum`, or `average`.
func.func @pool(%x : tensor<1x4x9x9xf32>) {
  %r = core.pool min %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: Expected `none`, `add`, `mul`, `max`, or `min`.
func.func @scatter_nd(%x : tensor<2x3xf32>, %i : tensor<1xi64>, %u : tensor<3xf32>) {
  %r = core.scatter_nd sub %x, %i, %u : (tensor<2x3xf32>, tensor<1xi64>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: Expected `double`, `single`, `real`, or `even`.
func.func @requantize(%x : tensor<2xi32>, %f : tensor<f64>) {
  %r = core.requantize up %x, %f zero 0 low 0 high 1 to i8 : (tensor<2xi32>, tensor<f64>) -> tensor<2xi8>
  func.return
}
