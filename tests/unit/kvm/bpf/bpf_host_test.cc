#include "kvm/bpf/bpf_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace vcpulse::kvm {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t Bit(Capability capability) {
  return uint64_t{1} << static_cast<int>(capability);
}

BpfHost HostWith(uint64_t capabilities) {
  return {.rights = {.effective = capabilities}, .has_types = true, .kernel_release = "6.1.0"};
}

TEST(ParseLockdown, IsTheModeInBrackets) {
  EXPECT_EQ(ParseLockdown("none [integrity] confidentiality\n"), "integrity");
  EXPECT_EQ(ParseLockdown("none integrity [confidentiality]\n"), "confidentiality");
  EXPECT_EQ(ParseLockdown("[none] integrity confidentiality\n"), "");
  EXPECT_EQ(ParseLockdown(""), "");
  EXPECT_EQ(ParseLockdown("]["), "");
}

TEST(WhyNoBpf, NamesTheCapabilitiesThatAreMissing) {
  EXPECT_EQ(WhyNoBpf(HostWith(Bit(Capability::kBpf) | Bit(Capability::kPerfmon))), "");
  EXPECT_EQ(WhyNoBpf(HostWith(Bit(Capability::kSysAdmin))), "");
  EXPECT_THAT(WhyNoBpf(HostWith(0)), HasSubstr("lacks CAP_BPF and CAP_PERFMON: "));
  EXPECT_THAT(WhyNoBpf(HostWith(Bit(Capability::kPerfmon))), HasSubstr("lacks CAP_BPF: "));
  EXPECT_THAT(WhyNoBpf(HostWith(Bit(Capability::kBpf))), HasSubstr("lacks CAP_PERFMON: "));
}

TEST(WhyNoBpf, NeedsTheKernelsTypes) {
  BpfHost host = HostWith(Bit(Capability::kSysAdmin));
  host.has_types = false;
  EXPECT_THAT(WhyNoBpf(host), HasSubstr("the kernel 6.1.0 has no types to read"));
}

TEST(WhyNoBpf, NeedsTheHostsPidsAndUsers) {
  BpfHost host = HostWith(Bit(Capability::kSysAdmin));
  host.own_pids = true;
  EXPECT_THAT(WhyNoBpf(host), HasSubstr("PIDs of its own namespace"));
  host.own_users = true;
  EXPECT_THAT(WhyNoBpf(host), HasSubstr("root in a user namespace alone"));
}

TEST(WhyBpfWasRefused, TellsALockdownAFilterAndAModuleApart) {
  BpfHost host = HostWith(Bit(Capability::kSysAdmin));
  EXPECT_THAT(WhyBpfWasRefused(host, EPERM), HasSubstr("security module forbids bpf(2)"));
  host.lockdown = "integrity";  // which does not forbid this program
  EXPECT_THAT(WhyBpfWasRefused(host, EPERM), HasSubstr("security module forbids bpf(2)"));
  host.rights.seccomp = 2;
  EXPECT_THAT(WhyBpfWasRefused(host, EPERM), HasSubstr("a seccomp filter"));
  host.lockdown = "confidentiality";
  EXPECT_THAT(WhyBpfWasRefused(host, EPERM), HasSubstr("locked down (confidentiality"));
  EXPECT_THAT(WhyBpfWasRefused(host, EMFILE), HasSubstr("ulimit -n"));
  EXPECT_THAT(WhyBpfWasRefused(host, EACCES), HasSubstr("verifier of kernel 6.1.0 refuses"));
  EXPECT_THAT(WhyBpfWasRefused(host, E2BIG), HasSubstr("Argument list too long"));
}

}  // namespace
}  // namespace vcpulse::kvm
