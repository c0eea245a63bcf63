#pragma once

// The `format` file of kvm:kvm_exit.

namespace vcpulse::kvm {

// Linux 6.18 on x86, without most of its print fmt.
inline constexpr char kX86ExitFormat[] =
    "name: kvm_exit\n"
    "ID: 103\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;\n"
    "\tfield:u64 info1;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"vcpu field:u32 offset:1; size:2; %u\", REC->vcpu_id\n";
// Linux 6.1 on arm64.
inline constexpr char kArmExitFormat[] =
    "name: kvm_exit\n"
    "ID: 77\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\n"
    "\tfield:int ret;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int esr_ec;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long vcpu_pc;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n"
    "\n"
    "print fmt: \"x\"\n";

}  // namespace vcpulse::kvm
