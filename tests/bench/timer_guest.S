# Firmware that reports how late its timer's interrupts come. Real mode, one vCPU; it starts at f000:fe00.
# Each 2^21 cycles of its time-stamp counter (0.6 to 1 ms) the local APIC interrupts it, and it writes the
# cycles by which that was late to the debug port, 4 bytes, little end first; the next period begins then. Meanwhile it is halted; with
# a NOP (0x90) in place of the HLT, at timer_guest_wait, it works.

        .section .rodata
        .global timer_guest, timer_guest_wait, timer_guest_end
        .equ    start, 0xfe00
        .equ    vector, 0x40
        .equ    period, 1 << 21

        .code16
timer_guest:
        cli
        xor     %ax, %ax
        mov     %ax, %ds
        mov     %ax, %es
        mov     %ax, %ss
        mov     $0x1000, %sp
        movw    $(start + interrupt - timer_guest), (vector * 4)
        movw    $0xf000, (vector * 4 + 2)
        mov     $0x1b, %ecx             # IA32_APIC_BASE: enabled, x2APIC
        rdmsr
        or      $0xc00, %eax
        wrmsr
        xor     %edx, %edx
        mov     $0x80f, %ecx            # spurious vector, APIC on
        mov     $0x1ff, %eax
        wrmsr
        mov     $0x832, %ecx            # the timer: by a deadline of the time-stamp counter
        mov     $((2 << 17) | vector), %eax
        wrmsr
        cld

next:   xor     %bp, %bp
        rdtsc
        add     $period, %eax
        adc     $0, %edx
        mov     %eax, %ebx
        mov     $0x6e0, %ecx            # IA32_TSC_DEADLINE
        wrmsr
        sti
timer_guest_wait:
        hlt
        test    %bp, %bp
        jz      timer_guest_wait
        cli
        mov     $0x2000, %si
        mov     $4, %cx
        mov     $0xe9, %dx
        rep outsb
        jmp     next

interrupt:
        rdtsc
        sub     %ebx, %eax
        mov     %eax, 0x2000
        inc     %bp
        xor     %eax, %eax
        xor     %edx, %edx
        mov     $0x80b, %ecx            # end of interrupt
        wrmsr
        iret
timer_guest_end:
        .code64
        .section .note.GNU-stack, "", @progbits
