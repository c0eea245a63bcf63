// Guest programs of known truth for x86-64: 64-bit mode, ring 0, flat memory, no interrupts but those of tick.
//
// At the start: rdi is the vCPU's mailbox (guest_memory.h), rsi the data, rdx two words that all vCPUs share, rsp a stack,
// the others are 0.
// r8 counts turns, r9 the fruitless looks of a wait.
// A program: its name, instructions and branches of a turn (the three of TURN, one of them a branch, included), the same of
// a fruitless look, and instructions before the first turn and after the last (the two of FINISH included).

        .section .rodata
        .balign 64
        .globl  vcpulse_guest_begin, vcpulse_guest_end
        .hidden vcpulse_guest_begin, vcpulse_guest_end
vcpulse_guest_begin:

        .macro  PROGRAM name, turn, branches, look, look_branches, once
        .balign 64
        .globl  vcpulse_guest_\name
        .hidden vcpulse_guest_\name    // not of the C library
vcpulse_guest_\name:
        .long   \turn, \branches, \look, \look_branches, \once, 0, 0, 0
        .endm

        .macro  TURN    again
        inc     %r8
        cmp     8(%rdi), %r8            // the limit, which may fall at any time
        jb      \again
        .endm

        .macro  CLOCK                   // into rax, by way of rdx
        rdtsc
        shl     $32, %rdx
        or      %rdx, %rax
        .endm

        .macro  FINISH
        mov     %r8, (%rdi)
        mov     %r9, 16(%rdi)
        out     %al, $0xf4              // leaves the guest, and does not count
        .endm

        .macro  WORK                    // 16 instructions that wait for each other
        .rept   4
        add     $1, %r10
        xor     %r10, %r11
        lea     (%r11,%r11,8), %r11
        add     %r11, %r10
        .endr
        .endm

        PROGRAM loop, 3, 1, 0, 0, 2
1:      TURN    1b
        FINISH

        PROGRAM alu, 35, 1, 0, 0, 2
1:      WORK
        WORK
        TURN    1b
        FINISH

        PROGRAM branchy, 9, 3, 0, 0, 4  // half of its first branches are taken, at random
        movabs  $6364136223846793005, %r14
        movabs  $1442695040888963407, %r15
1:      imul    %r14, %r10
        add     %r15, %r10
        bt      $40, %r10
        jc      2f
        add     $1, %r11
        jmp     3f
2:      sub     $1, %r11
        jmp     3f
3:      TURN    1b
        FINISH

        PROGRAM chase, 4, 1, 0, 0, 2    // each word of the data holds the address of the next one
1:      mov     (%rsi), %rsi
        TURN    1b
        FINISH

        PROGRAM divide, 6, 1, 0, 0, 4
        mov     $7, %ebx
        mov     $-1, %rax
1:      xor     %edx, %edx
        div     %rbx
        not     %rax
        TURN    1b
        FINISH

        PROGRAM copy, 21, 1, 0, 0, 4    // 64 bytes of the first 4 MiB to the second
        lea     0x400000(%rsi), %rbx
        mov     $0x3fffc0, %r11d
1:      .irp    offset, 0, 8, 16, 24, 32, 40, 48, 56
        mov     \offset(%rsi,%r10), %rax
        mov     %rax, \offset(%rbx,%r10)
        .endr
        add     $64, %r10
        and     %r11, %r10
        TURN    1b
        FINISH

        PROGRAM hash, 9, 1, 0, 0, 3     // over 4 KiB
        movabs  $0x9e3779b97f4a7c15, %r14
1:      mov     (%rsi,%r10), %rax
        xor     %rax, %r11
        imul    %r14, %r11
        rol     $13, %r11
        add     $8, %r10
        and     $0xff8, %r10
        TURN    1b
        FINISH

        PROGRAM multiply, 27, 1, 0, 0, 2 // a row by a column
1:      .irp    offset, 0, 8, 16, 24, 32, 40, 48, 56
        mov     \offset(%rsi), %rax
        imul    64+\offset(%rsi), %rax
        add     %rax, %r10
        .endr
        TURN    1b
        FINISH

        PROGRAM vector, 29, 1, 0, 0, 2  // rows by columns of 16-bit numbers, over 64 KiB
1:      .irp    offset, 0, 16, 32, 48, 64, 80, 96, 112
        movdqa  \offset(%rsi,%r10), %xmm0
        pmaddwd 0x8000+\offset(%rsi,%r10), %xmm0
        paddd   %xmm0, %xmm1
        .endr
        add     $128, %r10
        and     $0x7f80, %r10
        TURN    1b
        FINISH

        PROGRAM pause, 4, 1, 0, 0, 2
1:      pause
        TURN    1b
        FINISH

        PROGRAM poll, 5, 2, 0, 0, 2     // for a word that stays 0
1:      cmpq    $0, (%rdx)
        jne     2f
        TURN    1b
2:      FINISH

        PROGRAM clock, 4, 1, 0, 0, 2
1:      rdtsc
        TURN    1b
        FINISH

        PROGRAM deadline, 12, 2, 8, 2, 2 // waits for the clock to advance by 1,000
1:      CLOCK
        lea     1000(%rax), %r12
2:      CLOCK
        cmp     %r12, %rax
        jae     3f
        inc     %r9
        pause
        jmp     2b
3:      TURN    1b
        FINISH

        PROGRAM phases, 24, 2, 9, 2, 2  // spins while certain bits of the clock are set, works else
1:      CLOCK
        and     24(%rdi), %rax
        jz      2f
        inc     %r9
        pause
        cmp     8(%rdi), %r8            // there may be no work to come
        jb      1b
        FINISH
2:      WORK
        TURN    1b
        FINISH

        PROGRAM test_and_set, 24, 2, 7, 2, 2
1:      mov     $1, %eax
        xchg    %rax, (%rdx)
        test    %rax, %rax
        jz      2f
        inc     %r9
        pause
        jmp     1b
2:      WORK
        movq    $0, (%rdx)
        TURN    1b
        FINISH

        PROGRAM ticket, 24, 2, 5, 2, 2
1:      mov     $1, %eax
        lock xadd %rax, (%rdx)
2:      cmp     8(%rdx), %rax
        je      3f
        inc     %r9
        pause
        jmp     2b
3:      WORK
        incq    8(%rdx)
        TURN    1b
        FINISH

        PROGRAM queue, 26, 2, 5, 2, 3   // each waits for a node of the one before it (CLH), the first for the one at 0, which is free
        mov     %rdi, %r12
1:      movq    $1, 0xf00(%r12)
        mov     %r12, %rax
        xchg    %rax, (%rdx)
2:      cmpq    $0, 0xf00(%rax)
        je      3f
        inc     %r9
        pause
        jmp     2b
3:      WORK
        movq    $0, 0xf00(%r12)
        mov     %rax, %r12              // the other's is free from now on
        TURN    1b
        FINISH

        // Waits for a word that stays 0, and ever again at once: KVM skips MONITOR and MWAIT.
        PROGRAM wait, 0, 0, 0, 0, 0
        mov     %rdx, %r12
1:      mov     %r12, %rax
        xor     %ecx, %ecx
        xor     %edx, %edx
        monitor
        cmpq    $0, (%r12)
        jne     2f
        xor     %eax, %eax
        mwait
        TURN    1b
2:      FINISH

        // A turn for each time that it is woken. KVM skips the HLT, which does not count.
        PROGRAM halt, 0, 0, 0, 0, 0
1:      hlt
        TURN    1b
        FINISH

        // A turn for each interrupt of the APIC's timer, which KVM runs at 1 GHz. What KVM skips, and so does not count,
        // depends on the host's APIC.
        PROGRAM tick, 0, 0, 0, 0, 0
        .macro  APIC    register, value
        mov     $0x800+\register, %ecx
        mov     $\value, %eax
        xor     %edx, %edx
        wrmsr
        .endm
        APIC    0x0f, 0x1ff             // on; spurious interrupts have vector 255
        APIC    0x3e, 0xb               // the timer divides by 1
        APIC    0x32, 0x20020           // and is periodic, with vector 32
        APIC    0x38, 1000000
1:      sti
        hlt
        cli
        TURN    1b
        APIC    0x38, 0
        FINISH

        .balign 64
        .globl  vcpulse_guest_interrupt
        .hidden vcpulse_guest_interrupt
vcpulse_guest_interrupt:                // of that timer
        APIC    0x0b, 0                 // its end
        iretq

        .balign 64
vcpulse_guest_end:
        .section .note.GNU-stack, "", @progbits
