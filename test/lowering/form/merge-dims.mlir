// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,merge-dims --split-input-file | filecheck %s

// A map of equal shapes has one dimension, and so has what follows it: both are reshaped once.
// CHECK-LABEL: @maps
// CHECK-NEXT:    %[[X:.+]] = core.reshape %x [24]
// CHECK-NEXT:    %[[Y:.+]] = core.reshape %y [24]
// CHECK-NEXT:    %[[A:.+]] = core.kernel @add_0(%[[X]], %[[Y]])
// CHECK:         %[[Z:.+]] = core.reshape %[[A]] [2, 3, 4]
// CHECK-NEXT:    func.return %[[Z]]
func.func @maps(%x: tensor<2x3x4xf32>, %y: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %a = core.add %x, %y : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %a : tensor<2x3x4xf32>
}

// -----

// What repeats along some dimensions keeps these apart from the others; a dimension of one goes with any.
// CHECK-LABEL: @channels
// CHECK:         core.add {{.*}} : (tensor<3x20xf32>, tensor<3x1xf32>) -> tensor<3x20xf32>
// CHECK-LABEL: @rows
// CHECK:         core.add {{.*}} : (tensor<6x5xf32>, tensor<5xf32>) -> tensor<6x5xf32>
// CHECK-LABEL: @both
// CHECK-NOT:     core.reshape
func.func @channels(%x: tensor<1x3x4x5xf32>, %y: tensor<3x1x1xf32>) -> tensor<1x3x4x5xf32> {
  %a = core.add %x, %y : (tensor<1x3x4x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x5xf32>
  func.return %a : tensor<1x3x4x5xf32>
}
func.func @rows(%x: tensor<2x3x5xf32>, %y: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %a = core.add %x, %y : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  func.return %a : tensor<2x3x5xf32>
}
func.func @both(%x: tensor<2x1x5xf32>, %y: tensor<1x3x1xf32>) -> tensor<2x3x5xf32> {
  %a = core.add %x, %y : (tensor<2x1x5xf32>, tensor<1x3x1xf32>) -> tensor<2x3x5xf32>
  func.return %a : tensor<2x3x5xf32>
}

// -----

// Open dimensions are one with others if they are the same for all; two that may be one are not.
// CHECK-LABEL: @open
// CHECK:         core.add {{.*}} -> tensor<?xf32, #core.tensor<dims = [n * 15]>>
// CHECK-LABEL: @unknown
// CHECK-NOT:     core.reshape
// CHECK-LABEL: @unknown_beside_one
// CHECK-NOT:     core.reshape
func.func @open(%x: tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>>, %y: tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>>) -> tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>> {
  %a = core.add %x, %y : (tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>>, tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>>) -> tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>>
  func.return %a : tensor<?x3x5xf32, #core.tensor<dims = [n, 3, 5]>>
}
func.func @unknown(%x: tensor<5x?xf32, #core.tensor<dims = [5, n]>>, %y: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %a = core.add %x, %y : (tensor<5x?xf32, #core.tensor<dims = [5, n]>>, tensor<5x7xf32>) -> tensor<5x7xf32>
  func.return %a : tensor<5x7xf32>
}
func.func @unknown_beside_one(%x: tensor<?x1xf32, #core.tensor<dims = [n, 1]>>, %y: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %a = core.add %x, %y : (tensor<?x1xf32, #core.tensor<dims = [n, 1]>>, tensor<5x7xf32>) -> tensor<5x7xf32>
  func.return %a : tensor<5x7xf32>
}

// -----

// Reduced dimensions and those that stay, each among themselves; what lies between keeps them apart.
// CHECK-LABEL: @inner
// CHECK:         core.reduce sum %{{.*}} [1] : (tensor<6x20xf32>) -> tensor<6xf32>
// CHECK-LABEL: @kept
// CHECK:         core.reduce max %{{.*}} [1] {keep_dims = true} : (tensor<2x12x5xf32>) -> tensor<2x1x5xf32>
// CHECK-LABEL: @apart
// CHECK:         core.reduce sum %{{.*}} [0, 2] : (tensor<2x3x20xf32>) -> tensor<3xf32>
// CHECK-LABEL: @along
// CHECK:         core.softmax %{{.*}} axis 1 : (tensor<2x3x20xf32>) -> tensor<2x3x20xf32>
func.func @inner(%x: tensor<2x3x4x5xf32>) -> tensor<2x3xf32> {
  %r = core.reduce sum %x [2, 3] : (tensor<2x3x4x5xf32>) -> tensor<2x3xf32>
  func.return %r : tensor<2x3xf32>
}
func.func @kept(%x: tensor<2x3x4x5xf32>) -> tensor<2x1x1x5xf32> {
  %r = core.reduce max %x [1, 2] {keep_dims = true} : (tensor<2x3x4x5xf32>) -> tensor<2x1x1x5xf32>
  func.return %r : tensor<2x1x1x5xf32>
}
func.func @apart(%x: tensor<2x3x4x5xf32>) -> tensor<3xf32> {
  %r = core.reduce sum %x [0, 2, 3] : (tensor<2x3x4x5xf32>) -> tensor<3xf32>
  func.return %r : tensor<3xf32>
}
func.func @along(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %r = core.softmax %x axis 1 : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  func.return %r : tensor<2x3x4x5xf32>
}

// -----

// What one window covers; not where it is smaller, or takes every other element. Images side by
// side are channels, unless some are left out or there is something outside.
// CHECK-LABEL: @one_window
// CHECK:         core.pool max %{{.*}} kernel [20] strides [1] dilations [1] pads [0] [0] overhang [0] : (tensor<2x3x20xf32>) -> tensor<2x3x1xf32>
// CHECK-LABEL: @smaller
// CHECK:         core.pool max %{{.*}} kernel [3, 5]
// CHECK-LABEL: @spread
// CHECK:         core.pool max %{{.*}} kernel [2, 5]
// CHECK-LABEL: @images
// CHECK:         core.pool max %{{.*}} kernel [3, 5] strides [1, 2] dilations [1, 1] pads [1, 0] [1, 0] overhang [0, 0] : (tensor<2x60x6x7xf32>) -> tensor<2x60x6x2xf32>
// CHECK-LABEL: @left_out
// CHECK:         core.pool max %{{.*}} kernel [1, 3, 5]
// CHECK-LABEL: @outside
// CHECK:         core.pool max %{{.*}} kernel [1, 3, 5]
func.func @one_window(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32> {
  %r = core.pool max %x kernel [4, 5] strides [3, 4] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32>
  func.return %r : tensor<2x3x1x1xf32>
}
func.func @smaller(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x2x1xf32> {
  %r = core.pool max %x kernel [3, 5] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<2x3x4x5xf32>) -> tensor<2x3x2x1xf32>
  func.return %r : tensor<2x3x2x1xf32>
}
func.func @spread(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32> {
  %r = core.pool max %x kernel [2, 5] strides [1, 1] dilations [3, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32>
  func.return %r : tensor<2x3x1x1xf32>
}

func.func @images(%x: tensor<2x3x4x5x6x7xf32>) -> tensor<2x3x4x5x6x2xf32> {
  %r = core.pool max %x kernel [1, 1, 3, 5] strides [1, 1, 1, 2] dilations [2, 1, 1, 1] pads [0, 0, 1, 0] [0, 0, 1, 0] overhang [0, 0, 0, 0] : (tensor<2x3x4x5x6x7xf32>) -> tensor<2x3x4x5x6x2xf32>
  func.return %r : tensor<2x3x4x5x6x2xf32>
}
func.func @left_out(%x: tensor<2x3x5x6x7xf32>) -> tensor<2x3x3x4x3xf32> {
  %r = core.pool max %x kernel [1, 3, 5] strides [2, 1, 1] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<2x3x5x6x7xf32>) -> tensor<2x3x3x4x3xf32>
  func.return %r : tensor<2x3x3x4x3xf32>
}
func.func @outside(%x: tensor<2x3x5x6x7xf32>) -> tensor<2x3x6x4x3xf32> {
  %r = core.pool max %x kernel [1, 3, 5] strides [1, 1, 1] dilations [1, 1, 1] pads [0, 0, 0] [1, 0, 0] overhang [0, 0, 0] : (tensor<2x3x5x6x7xf32>) -> tensor<2x3x6x4x3xf32>
  func.return %r : tensor<2x3x6x4x3xf32>
}

// -----

// What moves together; whole lines that are cut, padded with a constant, joined and gathered.
// CHECK-LABEL: @transpose
// CHECK:         core.transpose %{{.*}} [0, 2, 1] : (tensor<2x3x20xf32>) -> tensor<2x20x3xf32>
// CHECK-LABEL: @slice
// CHECK:         core.slice %{{.*}} [0, 20] [2, 40] [1, 1] : (tensor<2x80xf32>) -> tensor<2x40xf32>
// CHECK-LABEL: @steps
// CHECK:         core.slice %{{.*}} [0, 1, 0] [2, 2, 20] [1, 2, 1] : (tensor<2x4x20xf32>) -> tensor<2x2x20xf32>
// CHECK-LABEL: @pad
// CHECK:         core.pad constant %{{.*}} [0, 20] [0, 40] : (tensor<2x60xf32>) -> tensor<2x120xf32>
// CHECK-LABEL: @mirrored
// CHECK:         core.pad reflect %{{.*}} [0, 1, 0] [0, 2, 0] : (tensor<2x3x20xf32>) -> tensor<2x6x20xf32>
// CHECK-LABEL: @concat
// CHECK:         core.concat {{.*}} axis 1 : (tensor<2x60xf32>, tensor<2x20xf32>) -> tensor<2x80xf32>
// CHECK-LABEL: @concat_one
// CHECK:         core.concat {{.*}} axis 0 : (tensor<15xf32>, tensor<5xf32>) -> tensor<20xf32>
// CHECK-LABEL: @gather
// CHECK:         core.gather {{.*}} axis 1 : (tensor<6x4x35xf32>, tensor<6xi64>) -> tensor<6x6x35xf32>
func.func @transpose(%x: tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> {
  %r = core.transpose %x [0, 2, 3, 1] : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  func.return %r : tensor<2x4x5x3xf32>
}
func.func @slice(%x: tensor<2x4x4x5xf32>) -> tensor<2x2x4x5xf32> {
  %r = core.slice %x [0, 1, 0, 0] [2, 2, 4, 5] [1, 1, 1, 1] : (tensor<2x4x4x5xf32>) -> tensor<2x2x4x5xf32>
  func.return %r : tensor<2x2x4x5xf32>
}
func.func @steps(%x: tensor<2x4x4x5xf32>) -> tensor<2x2x4x5xf32> {
  %r = core.slice %x [0, 1, 0, 0] [2, 2, 4, 5] [1, 2, 1, 1] : (tensor<2x4x4x5xf32>) -> tensor<2x2x4x5xf32>
  func.return %r : tensor<2x2x4x5xf32>
}
func.func @pad(%x: tensor<2x3x4x5xf32>) -> tensor<2x6x4x5xf32> {
  %r = core.pad constant %x [0, 1, 0, 0] [0, 2, 0, 0] : (tensor<2x3x4x5xf32>) -> tensor<2x6x4x5xf32>
  func.return %r : tensor<2x6x4x5xf32>
}
func.func @mirrored(%x: tensor<2x3x4x5xf32>) -> tensor<2x6x4x5xf32> {
  %r = core.pad reflect %x [0, 1, 0, 0] [0, 2, 0, 0] : (tensor<2x3x4x5xf32>) -> tensor<2x6x4x5xf32>
  func.return %r : tensor<2x6x4x5xf32>
}
func.func @concat(%x: tensor<2x3x4x5xf32>, %y: tensor<2x1x4x5xf32>) -> tensor<2x4x4x5xf32> {
  %r = core.concat %x, %y axis 1 : (tensor<2x3x4x5xf32>, tensor<2x1x4x5xf32>) -> tensor<2x4x4x5xf32>
  func.return %r : tensor<2x4x4x5xf32>
}
func.func @concat_one(%x: tensor<1x3x5xf32>, %y: tensor<1x1x5xf32>) -> tensor<1x4x5xf32> {
  %r = core.concat %x, %y axis 1 : (tensor<1x3x5xf32>, tensor<1x1x5xf32>) -> tensor<1x4x5xf32>
  func.return %r : tensor<1x4x5xf32>
}
func.func @gather(%x: tensor<2x3x4x5x7xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x2x3x5x7xf32> {
  %r = core.gather %x, %i axis 2 : (tensor<2x3x4x5x7xf32>, tensor<2x3xi64>) -> tensor<2x3x2x3x5x7xf32>
  func.return %r : tensor<2x3x2x3x5x7xf32>
}

// -----

// An op without a rule keeps all dimensions.
// CHECK-LABEL: @scores
// CHECK-NOT:     core.reshape
func.func @scores(%x: tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xi64>) {
  %v, %i = core.top_k %x [1] axis 2 : (tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xi64>)
  func.return %v, %i : tensor<2x3x1xf32>, tensor<2x3x1xi64>
}

// -----

// What is normalized is one dimension where parameters do not tell the dimensions apart.
// CHECK-LABEL: @image
// CHECK:         core.layer_norm {{.*}} : {{.*}}tensor<6x20xf32>
// CHECK-LABEL: @lines
// CHECK-NOT:     core.reshape
func.func @image(%x: tensor<6x4x5xf32>, %s: tensor<6x1x1xf32>) -> tensor<6x4x5xf32> {
  %y = core.layer_norm %x, %s axis 1 {epsilon = 1.0e-3 : f64} : (tensor<6x4x5xf32>, tensor<6x1x1xf32>) -> tensor<6x4x5xf32>
  func.return %y : tensor<6x4x5xf32>
}
func.func @lines(%x: tensor<6x4x5xf32>, %s: tensor<4x1xf32>) -> tensor<6x4x5xf32> {
  %y = core.layer_norm %x, %s axis 1 {epsilon = 1.0e-3 : f64} : (tensor<6x4x5xf32>, tensor<4x1xf32>) -> tensor<6x4x5xf32>
  func.return %y : tensor<6x4x5xf32>
}

// -----

// Rows that meet the same right matrix are those of one left matrix, whatever is added to them.
// CHECK-LABEL: @products
// CHECK:         core.matmul {{.*}} : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
// CHECK-NEXT:    core.add {{.*}} : (tensor<6x5xf32>, tensor<5xf32>) -> tensor<6x5xf32>
// CHECK-LABEL: @own_matrix
// CHECK:         core.matmul {{.*}} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
// CHECK-LABEL: @scaled_images
// CHECK:         core.matmul {{.*}} : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
// CHECK-LABEL: @own_zeros
// CHECK:         core.matmul {{.*}} : (tensor<2x3x4xui8>, tensor<4x5xi8>, tensor<2x3x1xui8>, tensor<i8>) -> tensor<2x3x5xi32>
func.func @products(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %p = core.matmul %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  %a = core.add %p, %b : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  func.return %a : tensor<2x3x5xf32>
}
func.func @own_matrix(%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %p = core.matmul %x, %w : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  func.return %p : tensor<2x3x5xf32>
}
func.func @scaled_images(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %s: tensor<2x1x1xf32>) -> tensor<2x3x5xf32> {
  %p = core.matmul %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  %a = core.mul %p, %s : (tensor<2x3x5xf32>, tensor<2x1x1xf32>) -> tensor<2x3x5xf32>
  func.return %a : tensor<2x3x5xf32>
}
func.func @own_zeros(%x: tensor<2x3x4xui8>, %w: tensor<4x5xi8>, %z: tensor<2x3x1xui8>, %v: tensor<i8>) -> tensor<2x3x5xi32> {
  %p = core.matmul %x, %w, %z, %v in i32 : (tensor<2x3x4xui8>, tensor<4x5xi8>, tensor<2x3x1xui8>, tensor<i8>) -> tensor<2x3x5xi32>
  func.return %p : tensor<2x3x5xi32>
}

// -----

// Lines are one where windows have one element of them; taps of the dimension before are whole
// lines apart then, if they are near each other.
// CHECK-LABEL: @points
// CHECK:         %[[W:.+]] = core.constant {{.*}} : tensor<7x4x1xf32>
// CHECK:         core.conv {{.*}} strides [1] dilations [3] pads [0] [0] {{.*}} : (tensor<1x4x30xf32>, tensor<7x4x1xf32>) -> tensor<1x7x30xf32>
// CHECK-LABEL: @columns
// CHECK:         core.conv {{.*}} strides [1] dilations [14] pads [7] [14] {{.*}} : (tensor<1x4x35xf32>, tensor<7x4x2xf32>) -> tensor<1x7x42xf32>
// CHECK-LABEL: @volumes
// CHECK:         core.conv {{.*}} strides [1, 1] dilations [1, 1] pads [1, 0] [1, 0] {{.*}} : (tensor<1x4x5x400xf32>, tensor<7x4x3x1xf32>) -> tensor<1x7x5x400xf32>
// CHECK-LABEL: @open
// CHECK:         core.conv {{.*}} pads [0] [0] {{.*}} : (tensor<1x4x?xf32, {{.*}}[1, 4, h * w]>>, tensor<7x4x1xf32>)
func.func @points(%x: tensor<1x4x5x6xf32>) -> tensor<1x7x5x6xf32> {
  %k = core.constant dense<1.0> : tensor<7x4x1x1xf32>
  %y = core.conv %x, %k strides [1, 1] dilations [3, 2] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x5x6xf32>, tensor<7x4x1x1xf32>) -> tensor<1x7x5x6xf32>
  func.return %y : tensor<1x7x5x6xf32>
}
func.func @columns(%x: tensor<1x4x5x7xf32>, %k: tensor<7x4x2x1xf32>) -> tensor<1x7x6x7xf32> {
  %y = core.conv %x, %k strides [1, 1] dilations [2, 1] pads [1, 0] [2, 0] groups 1 : (tensor<1x4x5x7xf32>, tensor<7x4x2x1xf32>) -> tensor<1x7x6x7xf32>
  func.return %y : tensor<1x7x6x7xf32>
}
func.func @volumes(%x: tensor<1x4x5x20x20xf32>, %k: tensor<7x4x3x1x1xf32>) -> tensor<1x7x5x20x20xf32> {
  %y = core.conv %x, %k strides [1, 1, 1] dilations [1, 1, 1] pads [1, 0, 0] [1, 0, 0] groups 1 : (tensor<1x4x5x20x20xf32>, tensor<7x4x3x1x1xf32>) -> tensor<1x7x5x20x20xf32>
  func.return %y : tensor<1x7x5x20x20xf32>
}
func.func @open(%x: tensor<1x4x?x?xf32, #core.tensor<dims = [1, 4, h, w]>>, %k: tensor<7x4x1x1xf32>) -> tensor<1x7x?x?xf32, #core.tensor<dims = [1, 7, h, w]>> {
  %y = core.conv %x, %k strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x?x?xf32, #core.tensor<dims = [1, 4, h, w]>>, tensor<7x4x1x1xf32>) -> tensor<1x7x?x?xf32, #core.tensor<dims = [1, 7, h, w]>>
  func.return %y : tensor<1x7x?x?xf32, #core.tensor<dims = [1, 7, h, w]>>
}

// -----

// Windows that have more of a line, are padded along it, or leave out lines keep both; so do taps
// of lines of open length.
// CHECK-LABEL: @wide
// CHECK-NOT:     core.reshape
func.func @wide(%x: tensor<1x4x5x7xf32>, %k: tensor<7x4x1x2xf32>) -> tensor<1x7x5x6xf32> {
  %y = core.conv %x, %k strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x5x7xf32>, tensor<7x4x1x2xf32>) -> tensor<1x7x5x6xf32>
  func.return %y : tensor<1x7x5x6xf32>
}
func.func @beside(%x: tensor<1x4x5x7xf32>, %k: tensor<7x4x1x1xf32>) -> tensor<1x7x5x8xf32> {
  %y = core.conv %x, %k strides [1, 1] dilations [1, 1] pads [0, 0] [0, 1] groups 1 : (tensor<1x4x5x7xf32>, tensor<7x4x1x1xf32>) -> tensor<1x7x5x8xf32>
  func.return %y : tensor<1x7x5x8xf32>
}
func.func @every_other(%x: tensor<1x4x5x7xf32>, %k: tensor<7x4x1x1xf32>) -> tensor<1x7x3x7xf32> {
  %y = core.conv %x, %k strides [2, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x5x7xf32>, tensor<7x4x1x1xf32>) -> tensor<1x7x3x7xf32>
  func.return %y : tensor<1x7x3x7xf32>
}
func.func @open_lines(%x: tensor<1x4x5x?xf32, #core.tensor<dims = [1, 4, 5, w]>>, %k: tensor<7x4x2x1xf32>) -> tensor<1x7x4x?xf32, #core.tensor<dims = [1, 7, 4, w]>> {
  %y = core.conv %x, %k strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x5x?xf32, #core.tensor<dims = [1, 4, 5, w]>>, tensor<7x4x2x1xf32>) -> tensor<1x7x4x?xf32, #core.tensor<dims = [1, 7, 4, w]>>
  func.return %y : tensor<1x7x4x?xf32, #core.tensor<dims = [1, 7, 4, w]>>
}

// -----

// A constant stays one only if its dimensions are known: else its size is checked when it is
// reshaped.
// CHECK-LABEL: @checked
// CHECK:         %[[C:.+]] = core.constant
// CHECK:         core.reshape %[[C]] [n]
// CHECK:         core.kernel @add_0
func.func @checked(%x: tensor<1x?xf32, #core.tensor<dims = [1, n]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, n]>> {
  %c = core.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %r = core.reshape %c [1, n] : (tensor<1x2xf32>) -> tensor<1x?xf32, #core.tensor<dims = [1, n]>>
  %y = core.add %x, %r : (tensor<1x?xf32, #core.tensor<dims = [1, n]>>, tensor<1x?xf32, #core.tensor<dims = [1, n]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, n]>>
  func.return %y : tensor<1x?xf32, #core.tensor<dims = [1, n]>>
}
