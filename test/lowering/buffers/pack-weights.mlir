// RUN: opt-tool %s --pass-pipeline=pack-weights --split-input-file | filecheck %s

// Matrices of the same bytes are packed each by its own shape: two by three are two rows of four,
// three by two are three.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.weight {value = #core.blob<"0x0101010001010100">} : !buffer.ref<[1, 2, 4] x i8>
// CHECK:         buffer.weight {value = #core.blob<"0x010100000101000001010000">} : !buffer.ref<[1, 3, 4] x i8>
buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[1, 2, 4] x i8>, %z : !buffer.ref<[1, 3, 4] x i8>):
  %a = buffer.weight {value = #core.blob<"0x010101010101">, layout = #core.layout<1/4, 0, 1 mod 4>, dims = #core.dims<[2, 3]>} : !buffer.ref<[1, 2, 4] x i8>
  %b = buffer.weight {value = #core.blob<"0x010101010101">, layout = #core.layout<1/4, 0, 1 mod 4>, dims = #core.dims<[3, 2]>} : !buffer.ref<[1, 3, 4] x i8>
  buffer.copy %a, %y : !buffer.ref<[1, 2, 4] x i8>, !buffer.ref<[1, 2, 4] x i8>
  buffer.copy %b, %z : !buffer.ref<[1, 3, 4] x i8>, !buffer.ref<[1, 3, 4] x i8>
  buffer.return
}

// -----

// The transformed taps of the same bytes depend on what type of number these are: three ones in f16.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.weight {value = #core.blob<"0x00BC003E0038003C">} : !buffer.ref<[1, 1, 4] x f16>
// CHECK:         buffer.weight {value = #core.blob<"0x00BC403C803B003C">} : !buffer.ref<[1, 1, 4] x bf16>
buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[1, 1, 4] x f16>, %z : !buffer.ref<[1, 1, 4] x bf16>):
  %a = buffer.weight {value = #core.blob<"0x003C003C003C">, layout = #core.layout<0, 1, 2 winograd 2>, dims = #core.dims<[1, 1, 3]>} : !buffer.ref<[1, 1, 4] x f16>
  %b = buffer.weight {value = #core.blob<"0x003C003C003C">, layout = #core.layout<0, 1, 2 winograd 2>, dims = #core.dims<[1, 1, 3]>} : !buffer.ref<[1, 1, 4] x bf16>
  buffer.copy %a, %y : !buffer.ref<[1, 1, 4] x f16>, !buffer.ref<[1, 1, 4] x f16>
  buffer.copy %b, %z : !buffer.ref<[1, 1, 4] x bf16>, !buffer.ref<[1, 1, 4] x bf16>
  buffer.return
}

// -----

// Equal tensors in one layout are one; constants lie in the order in which they are read.
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    %[[B:.*]] = buffer.weight {value = #core.blob<"0x0101">} : !buffer.ref<[1, 1, 2] x i8>
// CHECK-NEXT:    %[[A:.*]] = buffer.weight {value = #core.blob<"0x0101">} : !buffer.ref<[1, 1, 2] x i8>
// CHECK-NEXT:    buffer.copy %[[B]]
// CHECK-NEXT:    buffer.copy %[[A]]
buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[1, 1, 2] x i8>, %z : !buffer.ref<[1, 1, 2] x i8>):
  %a = buffer.weight {value = #core.blob<"0x0101">, layout = #core.layout<1/2, 0, 1 mod 2>, dims = #core.dims<[1, 2]>} : !buffer.ref<[1, 1, 2] x i8>
  %b = buffer.weight {value = #core.blob<"0x0101">, layout = #core.layout<1/2, 0, 1 mod 2>, dims = #core.dims<[1, 2]>} : !buffer.ref<[1, 1, 2] x i8>
  buffer.copy %b, %y : !buffer.ref<[1, 1, 2] x i8>, !buffer.ref<[1, 1, 2] x i8>
  buffer.copy %a, %z : !buffer.ref<[1, 1, 2] x i8>, !buffer.ref<[1, 1, 2] x i8>
  buffer.return
}

// -----

// A use in a loop counts where the loop stands; constants of their own layout stay as they are, and
// those that nothing reads come last.
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    %[[LOOP:.*]] = buffer.weight {value = #core.blob<"0x0201">} : !buffer.ref<[2, 1] x i8>
// CHECK-NEXT:    %[[PLAIN:.*]] = buffer.weight {value = #core.blob<"0x0102">} : !buffer.ref<[1, 2] x i8>
// CHECK-NEXT:    buffer.weight {value = #core.blob<"0x0707">} : !buffer.ref<[1, 2] x i8>
// CHECK:         buffer.once {
// CHECK:           buffer.copy %[[LOOP]]
// CHECK:         buffer.copy %[[PLAIN]]
buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[2, 1] x i8>, %z : !buffer.ref<[1, 2] x i8>):
  %u = buffer.weight {value = #core.blob<"0x0707">} : !buffer.ref<[1, 2] x i8>
  %a = buffer.weight {value = #core.blob<"0x0102">} : !buffer.ref<[1, 2] x i8>
  %b = buffer.weight {value = #core.blob<"0x0201">, layout = #core.layout<1, 0>, dims = #core.dims<[1, 2]>} : !buffer.ref<[2, 1] x i8>
  buffer.once {
    buffer.copy %b, %y : !buffer.ref<[2, 1] x i8>, !buffer.ref<[2, 1] x i8>
    buffer.yield
  }
  buffer.copy %a, %z : !buffer.ref<[1, 2] x i8>, !buffer.ref<[1, 2] x i8>
  buffer.return
}
