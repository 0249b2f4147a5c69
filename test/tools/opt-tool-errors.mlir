// RUN: not opt-tool %s -p cs 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not opt-tool %s -p 'cse{' 2>&1 | filecheck %s --check-prefix=SPEC
// RUN: not opt-tool %s -p 'cse{a=1}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not opt-tool %s -p 'parallelize{worth=x}' 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not opt-tool %s -p 'cse,' 2>&1 | filecheck %s --check-prefix=COMMA
// RUN: not opt-tool %s -p 'func.func(cse)' 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: opt-tool %s --pass-pipeline=fold --pass-pipeline=cse --print-ir-after-all 2>&1 | filecheck %s --check-prefix=REPEATED
// RUN: opt-tool %s -p fold -p cse --print-ir-after-all 2>&1 | filecheck %s --check-prefix=REPEATED
// RUN: opt-tool %s -p fold --passes=cse --print-ir-after-all 2>&1 | filecheck %s --check-prefix=REPEATED
// RUN: opt-tool %s | sed s/core.exp/core.exq/ | not opt-tool 2>&1 | filecheck %s --check-prefix=OPERATION
// RUN: not opt-tool %s --disable=fuze 2>&1 | filecheck %s --check-prefix=DISABLE
// RUN: not opt-tool %s --skip-nodes='(' 2>&1 | filecheck %s --check-prefix=REGEX
// RUN: not opt-tool %s --compile-to=asm 2>&1 | filecheck %s --check-prefix=PHASE
// RUN: not opt-tool %s --compile-to=c -p cse 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not opt-tool %s --load=nowhere:Pass 2>&1 | filecheck %s --check-prefix=LOAD
// RUN: not opt-tool %s --load=math:sqrt 2>&1 | filecheck %s --check-prefix=LOADED
// RUN: not opt-tool %s.missing 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not opt-tool %s --no-such-option 2>&1 | filecheck %s --check-prefix=USAGE
// RUN: not opt-tool %s -p form-kernels,fuse-epilogue,bufferize,fuse 2>&1 | filecheck %s --check-prefix=DIALECT

// NAME: opt-tool: --pass-pipeline: no pass 'cs'; did you mean cse?
// SPEC: opt-tool: --pass-pipeline: Error parsing pass pipeline specification
// SPEC-NOT: Traceback
// OPTION: opt-tool: --pass-pipeline: {{.*}}"a"
// TYPE: opt-tool: --pass-pipeline: pass 'parallelize': option 'worth': Incompatible types
// COMMA: opt-tool: --pass-pipeline: 'cse,' ends with a comma
// NESTED: Unknown token
// NESTED-NEXT: passes run on modules, so nothing nests but builtin.module(...)
// REPEATED: IR after fold
// REPEATED: IR after cse
// OPERATION: Operation core.exq is not registered; did you mean core.exp
// DISABLE: opt-tool: --disable: no pass 'fuze'; did you mean fuse
// REGEX: opt-tool: --skip-nodes:
// PHASE: opt-tool: --compile-to: 'asm' is none of imported, legal, optimized,
// BOTH: opt-tool: --compile-to and --pass-pipeline exclude each other
// LOAD: opt-tool: plugin 'nowhere:Pass': No module named 'nowhere'
// LOADED: opt-tool: plugin 'math:sqrt': is neither a Plugin nor a class derived from ModulePass
// MISSING: opt-tool-errors.mlir.missing: No such file or directory
// USAGE: opt-tool: error: unrecognized arguments: --no-such-option
// DIALECT: opt-tool-errors.mlir: {{.*}}found buffer ops; run fuse{{.*}} before bufferize: {{.*}}op 
// DIALECT-NOT: Traceback

func.func @main(%x : tensor<4xf32> {core.name = "x"}) -> (tensor<4xf32> {core.name = "y"}) {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
