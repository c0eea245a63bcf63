// The lab's guest: bare arm64 code at EL1, no operating system, that gives every vCPU one role and
// keeps it for ever.
//
// The roles are letters appended to the flat image, one per vCPU ("cat guest.bin; printf whh"):
//   w  works: dependent ALU instructions
//   h  halted in wfi, with no timer
//   s  spins: a load and a branch
//   y  spins with yield (each one leaves the emulator's loop: slow)
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

        .ltorg
roles:                                  // last in the image: the letters are appended here
