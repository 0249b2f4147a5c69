// RUN: opt-tool %s --split-input-file --verify-diagnostics

func.func @a_later_op(%x : tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{operand 0 is used before it is defined: %a, a result of 'core.neg'}}
  %y = core.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %a = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @itself(%x : tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{operand 1 is used before it is defined: %y, a result of 'core.add'}}
  %y = core.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @inside_of_a_region(%c : tensor<i1>, %x : tensor<4xf32>) -> tensor<4xf32> {
  %r = core.if %c : tensor<i1> -> tensor<4xf32> {
    // expected-error@+1 {{operand 0 is used before it is defined: %b, a result of 'core.neg'}}
    %a = core.exp %b : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %a : tensor<4xf32>
  } else {
    core.yield %x : tensor<4xf32>
  }
  %b = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// -----

// Blocks in any order: what dominates a block is before it.
func.func @dominated(%c : i1) -> i32 {
  "cf.cond_br"(%c)[^yes, ^no] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
^end:
  func.return %a : i32
^yes:
  %a = arith.constant 1 : i32
  "cf.br"() [^end] : () -> ()
^no:
  %b = arith.constant 2 : i32
  func.return %b : i32
}

// -----

func.func @of_one_way_only(%c : i1) -> i32 {
  "cf.cond_br"(%c)[^yes, ^no] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
^yes:
  %a = arith.constant 1 : i32
  "cf.br"() [^no] : () -> ()
^no:
  // expected-error@+1 {{operand 0 is used before it is defined: %a, a result of 'arith.constant'}}
  func.return %a : i32
}

// -----

// A loop of blocks: the value of the block before is there, that of the block after is not.
func.func @around(%c : i1) -> i32 {
  %z = arith.constant 0 : i32
  "cf.br"() [^head] : () -> ()
^head:
  %s = arith.addi %z, %z : i32
  // expected-error@+1 {{operand 1 is used before it is defined: %t, a result of 'arith.addi'}}
  %u = arith.addi %s, %t : i32
  "cf.cond_br"(%c)[^body, ^end] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
^body:
  %t = arith.addi %s, %z : i32
  "cf.br"() [^head] : () -> ()
^end:
  func.return %s : i32
}
