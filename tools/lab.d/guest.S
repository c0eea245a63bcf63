// The lab's guest: bare arm64 code at EL1, no operating system, that gives every vCPU one role and
// keeps it for ever.
//
// The roles are letters appended to the flat image, one per vCPU ("cat guest.bin; printf whh"):
//   w  works: dependent ALU instructions
//   h  halted in wfi, with no timer
//   s  spins: a load and a branch
//   y  spins with yield (each one leaves the emulator's loop: slow)
//   p  works for a second and is halted for a second, in turn
//   3  spins for 3 tenths of uneven periods of 0.2 to 0.4 s, and is halted for the rest
//   4  the same for 4 tenths
//   x  executes 4,096 instructions, then reads a register of the interrupt controller, which the host's kernel
//      emulates: a VM exit each time
//   t  halted, woken by its timer 0.4 ms later each time: soon enough for the host to poll for it
//
// QEMU loads a flat image at 0x40080000 and starts vCPU 0 there; memory behind the roles is zero.

        .equ    PSCI_CPU_ON, 0xC4000003

        .text
        .global _start
_start: adr     x20, roles
        mov     x21, #1
start:  ldrb    w0, [x20, x21]
        cbz     w0, started
        ldr     x0, =PSCI_CPU_ON
        mov     x1, x21                 // which vCPU
        adr     x2, play                // where it starts
        mov     x3, x21                 // its x0 there
        hvc     #0
        add     x21, x21, #1
        b       start
started:
        mov     x0, #0

play:   adr     x20, roles              // x0: the number of this vCPU
        ldrb    w1, [x20, x0]
        cmp     w1, #'w'
        b.eq    work
        cmp     w1, #'s'
        b.eq    spin
        cmp     w1, #'y'
        b.eq    yielding
        cmp     w1, #'p'
        b.eq    phases
        cmp     w1, #'x'
        b.eq    exits
        cmp     w1, #'t'
        b.eq    ticking
        cmp     w1, #'3'
        b.eq    duty
        cmp     w1, #'4'
        b.eq    duty
halt:   wfi
        b       halt

work:
        .rept   32                      // long blocks are quicker to emulate
        add     x2, x2, #1
        eor     x3, x3, x2
        add     x3, x3, x2, lsl #3
        add     x4, x4, x3
        .endr
        b       work

spin:   ldrb    w1, [x20, x0]
        cbnz    w1, spin

yielding:
        yield
        ldrb    w1, [x20, x0]
        cbnz    w1, yielding

exits:  ldr     x8, =0x08000000         // GICv3 distributor of QEMU's virt: the kernel answers for it
1:      .rept   1024
        add     x2, x2, #1
        eor     x3, x3, x2
        add     x3, x3, x2, lsl #3
        add     x4, x4, x3
        .endr
        ldr     w9, [x8, #4]            // GICD_TYPER
        b       1b

// x5 is the length of a phase or period and x6 the end of the present one, both in ticks of the
// virtual counter.
phases: bl      let_timer_through
        mrs     x5, cntfrq_el0          // one second
        mrs     x6, cntvct_el0
phase:  add     x6, x6, x5
1:      .rept   32
        add     x2, x2, #1
        eor     x3, x3, x2
        add     x3, x3, x2, lsl #3
        add     x4, x4, x3
        .endr
        mrs     x7, cntvct_el0
        cmp     x7, x6
        b.lt    1b
        add     x6, x6, x5
        bl      sleep
        b       phase

// x5 is a tenth of a second, x6 the end of the present period, x10 how many tenths of it are spun,
// x12 the state of a random number generator (Knuth's MMIX), x13 the length of the period.
duty:   sub     w10, w1, #'0'
        bl      let_timer_through
        mov     x11, #10
        mrs     x5, cntfrq_el0
        udiv    x5, x5, x11
        mrs     x6, cntvct_el0
        orr     x12, x6, #1
        ldr     x16, =6364136223846793005
        lsl     x17, x5, #1
period: mul     x12, x12, x16
        add     x12, x12, #1
        lsr     x13, x12, #40
        udiv    x14, x13, x17
        msub    x13, x14, x17, x13      // the rest of dividing by 0.2 s
        add     x13, x13, x17
        mul     x14, x13, x10
        udiv    x14, x14, x11
        add     x14, x14, x6
1:      .rept   64
        ldrb    w7, [x20]
        .endr
        mrs     x7, cntvct_el0
        cmp     x7, x14
        b.lt    1b
        add     x6, x6, x13
        bl      sleep
        b       period

ticking:
        bl      let_timer_through
        mrs     x5, cntfrq_el0
        mov     x6, #2500
        udiv    x5, x5, x6
tick:   mrs     x6, cntvct_el0
        add     x6, x6, x5
        bl      sleep
        b       tick

// The timer's interrupt reaches this vCPU (x0). Interrupts are masked: pending, it ends a wfi.
let_timer_through:
        ldr     x8, =0x08000000         // GICv3 distributor of QEMU's virt
        mov     w9, #2                  // group 1
        str     w9, [x8]
        ldr     x8, =0x080B0000         // redistributor of vCPU 0, its private interrupts
        add     x8, x8, x0, lsl #17
        mov     w9, #(1 << 27)          // the virtual timer's
        str     w9, [x8, #0x80]         // group 1
        str     w9, [x8, #0x100]        // enabled
        mov     x9, #0xff
        msr     S3_0_C4_C6_0, x9        // ICC_PMR_EL1
        mov     x9, #1
        msr     S3_0_C12_C12_7, x9      // ICC_IGRPEN1_EL1
        ret

sleep:  msr     cntv_cval_el0, x6
        mov     x7, #1
        msr     cntv_ctl_el0, x7
1:      wfi
        mrs     x7, cntvct_el0
        cmp     x7, x6
        b.lt    1b
        msr     cntv_ctl_el0, xzr
        isb
        mrs     x7, S3_0_C12_C12_0      // ICC_IAR1_EL1: acknowledged, or it would stay pending
        msr     S3_0_C12_C12_1, x7      // ICC_EOIR1_EL1
        ret

        .ltorg
roles:                                  // last in the image: the letters are appended here
