// Guest programs of known truth for arm64: EL1, flat memory that is cached, no interrupts (masked ones wake).
//
// At the start: x0 is the vCPU's mailbox (guest_memory.h), x1 the data, x2 two words that all vCPUs share, x7 an address that no
// memory stands behind, the others are 0. x8 counts turns, x9 the fruitless looks of a wait.
// A program: its name, instructions and branches of a turn (the four of TURN, one of them a branch, included), the same of
// a fruitless look, and instructions before the first turn and after the last (the two of FINISH included).

        .arch   armv8.1-a               // swpa, ldadda
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
        add     x8, x8, #1
        ldr     x10, [x0, #8]           // the limit, which may fall at any time
        cmp     x8, x10
        b.lo    \again
        .endm

        .macro  FINISH
        str     x8, [x0]
        str     x9, [x0, #16]
        str     xzr, [x7]               // leaves the guest, and does not count
        .endm

        .macro  WORK                    // 16 instructions that wait for each other
        .rept   4
        add     x11, x11, #1
        eor     x12, x12, x11
        add     x12, x12, x12, lsl #3
        add     x11, x11, x12
        .endr
        .endm

        PROGRAM loop, 4, 1, 0, 0, 2
1:      TURN    1b
        FINISH

        PROGRAM alu, 36, 1, 0, 0, 2
1:      WORK
        WORK
        TURN    1b
        FINISH

        PROGRAM branchy, 8, 3, 0, 0, 4  // half of its first branches are taken, at random
        ldr     x14, =6364136223846793005
        ldr     x15, =1442695040888963407
1:      madd    x11, x11, x14, x15
        tbnz    x11, #40, 2f
        add     x12, x12, #1
        b       3f
2:      sub     x12, x12, #1
        b       3f
3:      TURN    1b
        FINISH
        .ltorg

        PROGRAM chase, 5, 1, 0, 0, 2    // each word of the data holds the address of the next one
1:      ldr     x1, [x1]
        TURN    1b
        FINISH

        PROGRAM divide, 6, 1, 0, 0, 4
        mov     x11, #-1
        mov     x12, #7
1:      udiv    x11, x11, x12
        mvn     x11, x11
        TURN    1b
        FINISH

        PROGRAM copy, 16, 1, 0, 0, 4    // 64 bytes of the first 4 MiB to the second
        add     x11, x1, #0x400, lsl #12
        ldr     x14, =0x3fffc0
1:      add     x12, x1, x13
        add     x15, x11, x13
        .irp    offset, 0, 16, 32, 48
        ldp     x16, x17, [x12, #\offset]
        stp     x16, x17, [x15, #\offset]
        .endr
        add     x13, x13, #64
        and     x13, x13, x14
        TURN    1b
        FINISH
        .ltorg

        PROGRAM hash, 10, 1, 0, 0, 3    // over 4 KiB
        ldr     x14, =0x9e3779b97f4a7c15
1:      ldr     x12, [x1, x13]
        eor     x11, x11, x12
        mul     x11, x11, x14
        ror     x11, x11, #51
        add     x13, x13, #8
        and     x13, x13, #0xff8
        TURN    1b
        FINISH
        .ltorg

        PROGRAM multiply, 28, 1, 0, 0, 2 // a row by a column
1:      .irp    offset, 0, 8, 16, 24, 32, 40, 48, 56
        ldr     x12, [x1, #\offset]
        ldr     x13, [x1, #64+\offset]
        madd    x11, x12, x13, x11
        .endr
        TURN    1b
        FINISH

        PROGRAM vector, 32, 1, 0, 0, 2  // rows by columns of 16-bit numbers, over 64 KiB
1:      add     x12, x1, x14
        add     x13, x12, #0x8, lsl #12
        .irp    offset, 0, 16, 32, 48, 64, 80, 96, 112
        ldr     q0, [x12, #\offset]
        ldr     q1, [x13, #\offset]
        mla     v2.8h, v0.8h, v1.8h
        .endr
        add     x14, x14, #128
        and     x14, x14, #0x7f80
        TURN    1b
        FINISH

        PROGRAM pause, 5, 1, 0, 0, 2
1:      yield
        TURN    1b
        FINISH

        PROGRAM poll, 6, 2, 0, 0, 2     // for a word that stays 0
1:      ldr     x11, [x2]
        cbnz    x11, 2f
        TURN    1b
2:      FINISH

        PROGRAM clock, 5, 1, 0, 0, 2
1:      mrs     x11, cntvct_el0
        TURN    1b
        FINISH

        PROGRAM deadline, 9, 2, 6, 2, 2 // waits for the clock to advance by 64
1:      mrs     x11, cntvct_el0
        add     x12, x11, #64
2:      mrs     x11, cntvct_el0
        cmp     x11, x12
        b.hs    3f
        add     x9, x9, #1
        yield
        b       2b
3:      TURN    1b
        FINISH

        PROGRAM phases, 24, 2, 9, 2, 2  // spins while certain bits of the clock are set, works else
1:      mrs     x13, cntvct_el0
        ldr     x14, [x0, #24]
        tst     x13, x14
        b.eq    2f
        add     x9, x9, #1
        yield
        ldr     x10, [x0, #8]           // there may be no work to come
        cmp     x8, x10
        b.lo    1b
        FINISH
2:      WORK
        TURN    1b
        FINISH

        PROGRAM test_and_set, 24, 2, 6, 2, 2
1:      mov     x11, #1
        swpa    x11, x12, [x2]
        cbz     x12, 2f
        add     x9, x9, #1
        yield
        b       1b
2:      WORK
        stlr    xzr, [x2]
        TURN    1b
        FINISH

        PROGRAM ticket, 28, 2, 6, 2, 2
1:      mov     x11, #1
        ldadda  x11, x12, [x2]
        add     x13, x2, #8
2:      ldar    x14, [x13]
        cmp     x14, x12
        b.eq    3f
        add     x9, x9, #1
        yield
        b       2b
3:      WORK
        add     x14, x14, #1
        stlr    x14, [x13]
        TURN    1b
        FINISH

        PROGRAM queue, 29, 2, 5, 2, 3   // each waits for a node of the one before it (CLH), the first for the one at 0, which is free
        mov     x13, x0
1:      mov     x14, #1
        add     x15, x13, #0xf00
        str     x14, [x15]
        swpal   x13, x17, [x2]
        add     x16, x17, #0xf00
2:      ldar    x14, [x16]
        cbz     x14, 3f
        add     x9, x9, #1
        yield
        b       2b
3:      WORK
        stlr    xzr, [x15]
        mov     x13, x17                // the other's is free from now on
        TURN    1b
        FINISH

        // Looks at a word that stays 0 at each event: the clock's, each time that its bit 11 rises, and others. Whether WFE is
        // trapped, and so skipped and not counted, changes as it runs.
        PROGRAM wait, 0, 0, 0, 0, 0
        mov     x11, #0xb4
        msr     cntkctl_el1, x11
        isb
1:      ldr     x11, [x2]
        cbnz    x11, 2f
        wfe
        TURN    1b
2:      FINISH

        // A turn for each time that it is woken. KVM skips the WFI, which does not count.
        PROGRAM halt, 0, 0, 0, 0, 0
1:      wfi
        TURN    1b
        FINISH

        // A turn for each time that its timer wakes it. What KVM skips, and so does not count, depends on the host.
        PROGRAM tick, 0, 0, 0, 0, 0
        mrs     x11, cntfrq_el0
        mov     x12, #1000              // a millisecond
        udiv    x11, x11, x12
        mov     x13, #1
1:      msr     cntv_tval_el0, x11
        msr     cntv_ctl_el0, x13
        wfi
        TURN    1b
        msr     cntv_ctl_el0, xzr
        FINISH

        .balign 64
vcpulse_guest_end:
        .section .note.GNU-stack, "", %progbits
