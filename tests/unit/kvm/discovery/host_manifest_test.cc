#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::fakes {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class HostManifest : public ::testing::Test {
 protected:
  fs::path Unpack(const std::string& manifest) {
    folder_.Write("x.host", manifest);
    UnpackHost(folder_.Path("x.host").string(), folder_.Path("x"));
    return folder_.Path("x");
  }

  ProcDir folder_;
};

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(HostManifest, HoldsFilesLinksAndEmptyFolders) {
  const fs::path root = Unpack(
      "# a comment\n\n"
      "proc/1/cmdline = a\\0b c\\0\\\n"
      "proc/1/cgroup = 0::/web\\\\x2d1\n"
      "proc/1/status:\n"
      "  Name:\tx = y\n"
      "    # of the file\n"
      "proc/1/environ:\n"
      "proc/1/fd/0 -> /dev/null\n"
      "proc/1/fd/3 -> anon_inode:kvm-vm\n"
      "proc/1/map_files/\n");
  EXPECT_EQ(BytesOf(root / "proc/1/cmdline"), std::string("a\0b c\0", 6));
  EXPECT_EQ(BytesOf(root / "proc/1/cgroup"), "0::/web\\x2d1\n");
  EXPECT_EQ(BytesOf(root / "proc/1/status"), "Name:\tx = y\n  # of the file\n");
  EXPECT_TRUE(fs::is_regular_file(root / "proc/1/environ"));
  EXPECT_EQ(fs::file_size(root / "proc/1/environ"), 0u);
  EXPECT_EQ(fs::read_symlink(root / "proc/1/fd/0"), "/dev/null");
  EXPECT_EQ(fs::read_symlink(root / "proc/1/fd/3"), "anon_inode:kvm-vm");
  EXPECT_TRUE(fs::is_empty(root / "proc/1/map_files"));
}

TEST_F(HostManifest, FailsAtAMalformedLine) {
  struct Row {
    const char* line;
    const char* message;
  };
  for (const Row& row : {
           Row{"proc/1/comm", "x.host:3: expected PATH = TEXT"},
           Row{"proc/1/comm = a\\x2d", "x.host:3: unknown escape \\x"},
           Row{"  text", "x.host:3: text of no file"},
           Row{"known -> other", "x.host:3: path listed twice"},
           Row{"known/below = 1", "x.host:3: "},
           Row{" = 1", "x.host:3: not a path below the root"},
           Row{"/proc/1/comm = a", "x.host:3: not a path below the root"},
           Row{"proc/../../y:", "x.host:3: not a path below the root"},
       }) {
    fs::remove_all(folder_.Path("x"));
    EXPECT_THAT([&] { Unpack(std::string("known = 1\n\n") + row.line + "\n"); },
                ThrowsMessage<std::runtime_error>(HasSubstr(row.message)))
        << row.line;
  }
  EXPECT_THAT([] { HostTree("no-such"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("hosts/no-such.host")));
}

TEST_F(HostManifest, IsUnpackedOncePerProcess) {
  const fs::path root = HostTree("no-pmu");
  EXPECT_TRUE(fs::exists(root / "sys/bus/event_source/devices/msr/type"));
  std::ofstream(root / "written-since") << "x";
  EXPECT_EQ(HostTree("no-pmu"), root);
  EXPECT_TRUE(fs::exists(root / "written-since"));
  EXPECT_NE(HostTree("amd"), root);
}

}  // namespace
}  // namespace vcpulse::fakes
