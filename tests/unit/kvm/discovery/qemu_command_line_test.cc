#include "kvm/discovery/qemu_command_line.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

QemuCommandLine Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "qemu-system-x86_64");
  return ParseQemuCommandLine(arguments);
}

TEST(ParseQemuOptions, SplitsAtSingleCommasOnly) {
  EXPECT_THAT(ParseQemuOptions("guest=a,,b,debug-threads=on", "guest"),
              ElementsAre(Pair("guest", "a,b"), Pair("debug-threads", "on")));
  EXPECT_THAT(ParseQemuOptions("x,,,y", "guest"),
              ElementsAre(Pair("guest", "x,"), Pair("y", "on")));
  EXPECT_THAT(ParseQemuOptions("socket,server,path=/a=b", "backend"),
              ElementsAre(Pair("backend", "socket"), Pair("server", "on"), Pair("path", "/a=b")));
  EXPECT_THAT(ParseQemuOptions("", "guest"), IsEmpty());
}

// The forms that virsh, vng, devlib and people use.
TEST(QemuCommandLine, TakesTheNameInAllItsForms) {
  EXPECT_EQ(Parse({"-name", "web"}).name, "web");
  EXPECT_EQ(Parse({"--name", "web"}).name, "web");
  EXPECT_EQ(Parse({"-name", "web,process=x"}).name, "web");
  const QemuCommandLine line = Parse({"-name", "guest=a,,b,debug-threads=on"});
  EXPECT_EQ(line.name, "a,b");
  EXPECT_TRUE(line.debug_threads);
  EXPECT_FALSE(Parse({"-name", "web,debug-threads=off"}).debug_threads);
  EXPECT_EQ(Parse({}).name, "");
}

// QEMU merges repeated -name options: each key has its last value.
TEST(QemuCommandLine, LaterNameOptionsOverride) {
  const QemuCommandLine line = Parse({"-name", "a,debug-threads=on", "-name", "b"});
  EXPECT_EQ(line.name, "b");
  EXPECT_TRUE(line.debug_threads);
}

// The value of an option is not an option.
TEST(QemuCommandLine, AValueThatLooksLikeAnOptionIsAValue) {
  const QemuCommandLine line = Parse({"-name", "-uuid", "-enable-kvm"});
  EXPECT_EQ(line.name, "-uuid");
  EXPECT_EQ(line.uuid, "");
  EXPECT_EQ(line.accelerator, Accelerator::kKvm);
}

TEST(QemuCommandLine, TakesTheUuid) {
  EXPECT_EQ(Parse({"-uuid", "5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69"}).uuid,
            "5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69");
}

TEST(QemuCommandLine, TellsTheAcceleratorAskedFor) {
  EXPECT_EQ(Parse({"-accel", "kvm"}).accelerator, Accelerator::kKvm);
  EXPECT_EQ(Parse({"-accel", "kvm,kernel-irqchip=split"}).accelerator, Accelerator::kKvm);
  EXPECT_EQ(Parse({"-accel", "tcg,thread=multi"}).accelerator, Accelerator::kTcg);
  EXPECT_EQ(Parse({"-enable-kvm"}).accelerator, Accelerator::kKvm);
  EXPECT_EQ(Parse({"-machine", "q35,accel=kvm"}).accelerator, Accelerator::kKvm);
  EXPECT_EQ(Parse({"-M", "accel=tcg,type=q35"}).accelerator, Accelerator::kTcg);
}

// A choice is decided by QEMU: the command line does not tell.
TEST(QemuCommandLine, AChoiceOfAcceleratorsIsUnknown) {
  EXPECT_EQ(Parse({"-machine", "q35,accel=kvm:tcg"}).accelerator, Accelerator::kUnknown);
  EXPECT_EQ(Parse({"-accel", "kvm", "-accel", "tcg"}).accelerator, Accelerator::kUnknown);
  EXPECT_EQ(Parse({"-machine", "q35"}).accelerator, Accelerator::kUnknown);
  EXPECT_EQ(Parse({"-accel", "hvf"}).accelerator, Accelerator::kUnknown);
}

TEST(QemuCommandLine, ListsQmpServers) {
  const QemuCommandLine line =
      Parse({"-qmp", "unix:/run/a,,b.sock,server=on,wait=off", "-qmp", "tcp:localhost:3636,server",
             "-chardev", "socket,id=m,path=/run/m.sock,server=on,wait=off", "-mon",
             "chardev=m,mode=control", "-chardev", "socket,id=t,host=::1,port=77,server=on", "-mon",
             "t,mode=control"});
  EXPECT_THAT(line.qmp_addresses, ElementsAre("unix:/run/a,b.sock", "tcp:localhost:3636",
                                              "unix:/run/m.sock", "tcp:[::1]:77"));
}

// What cannot be connected to must not be offered as an address.
TEST(QemuCommandLine, LeavesOutWhatIsNoQmpServer) {
  const QemuCommandLine line =
      Parse({"-qmp", "unix:/run/client.sock", "-qmp", "stdio", "-qmp", "tcp:4444,server=on",
             "-chardev", "socket,id=h,path=/run/human.sock,server=on", "-mon", "chardev=h",
             "-chardev", "socket,id=f,fd=3,server=on", "-mon", "chardev=f,mode=control", "-mon",
             "chardev=unknown,mode=control", "-qmp"});
  EXPECT_THAT(line.qmp_addresses, IsEmpty());
}

// With the interrupt controller in QEMU a halted vCPU waits there, and looks like a paused one.
TEST(QemuCommandLine, TellsAnIrqchipInUserspace) {
  EXPECT_TRUE(Parse({"-machine", "pc,kernel_irqchip=off"}).userspace_irqchip);
  EXPECT_TRUE(Parse({"-accel", "kvm,kernel-irqchip=off"}).userspace_irqchip);
  EXPECT_FALSE(Parse({"-machine", "q35,kernel_irqchip=split"}).userspace_irqchip);
  EXPECT_FALSE(Parse({"-M", "pc,kernel_irqchip=off,kernel_irqchip=on"}).userspace_irqchip);
  EXPECT_FALSE(Parse({"-machine", "pc"}).userspace_irqchip);
  EXPECT_FALSE(Parse({"-machine", "q35"}).is_confidential);
  EXPECT_TRUE(Parse({"-machine", "q35,confidential-guest-support=sev0"}).is_confidential);
  EXPECT_TRUE(Parse({"-M", "pc,memory-encryption=sev0"}).is_confidential);
}

TEST(IsQemuProgram, GoesByTheFileName) {
  for (const char* program : {"/usr/bin/qemu-system-x86_64", "qemu-system-aarch64", "/usr/bin/kvm",
                              "/usr/libexec/qemu-kvm", ".qemu-system-x86_64-wrapped"}) {
    EXPECT_TRUE(IsQemuProgram(program)) << program;
  }
  for (const char* program :
       {"/opt/qemu-system-x86_64/bin/sh", "qemu-img", "kvmtool", "bash", ""}) {
    EXPECT_FALSE(IsQemuProgram(program)) << program;
  }
}

}  // namespace
}  // namespace vcpulse::kvm
