// The compiled keep_threads.bpf.c, as bytes of vcpulse. Architecture-neutral.
    .section .rodata
    .balign 8
    .global vcpulse_bpf_program, vcpulse_bpf_program_end
    .hidden vcpulse_bpf_program, vcpulse_bpf_program_end
vcpulse_bpf_program:
    .incbin VCPULSE_BPF_OBJECT
vcpulse_bpf_program_end:
    .section .note.GNU-stack, "", %progbits
