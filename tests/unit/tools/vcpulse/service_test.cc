// What a service manager hears, over its datagram socket.
#include "tools/vcpulse/service.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/base/fd.h"
#include "tests/fakes/temporary_folder.h"
#include "tools/vcpulse/collect_options.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {
namespace {

// A service manager at `name`, whose first byte may be zero.
class ServiceManager {
 public:
  explicit ServiceManager(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const size_t length = offsetof(sockaddr_un, sun_path) + name.size();
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(length)),
              0)
        << std::strerror(errno);
  }

  // What has come; empty where nothing has.
  std::string Heard() const {
    char bytes[256];
    const ssize_t count = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    return count < 0 ? "" : std::string(bytes, static_cast<size_t>(count));
  }

 private:
  Fd socket_;
};

class ServiceNotifyTest : public ::testing::Test {
 protected:
  ~ServiceNotifyTest() override {
    unsetenv("NOTIFY_SOCKET");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_ = fakes::MakeTemporaryFolder();
};

TEST_F(ServiceNotifyTest, OverASocketOfTheFileSystem) {
  const std::string path = folder_ / "notify";
  const ServiceManager manager(path);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  NotifyService("READY=1\nSTATUS=well");
  EXPECT_EQ(manager.Heard(), "READY=1\nSTATUS=well");
  NotifyService("STOPPING=1");
  EXPECT_EQ(manager.Heard(), "STOPPING=1");
}

TEST_F(ServiceNotifyTest, OverAnAbstractSocket) {
  const std::string name = "vcpulse-test-" + std::to_string(getpid());
  const ServiceManager manager(std::string(1, '\0') + name);
  setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  NotifyService("READY=1");
  EXPECT_EQ(manager.Heard(), "READY=1");
}

TEST_F(ServiceNotifyTest, NobodyListens) {
  const ServiceManager manager(folder_ / "notify");
  NotifyService("READY=1");  // no NOTIFY_SOCKET
  for (const std::string& name : {std::string(), folder_.string() + "/other", std::string("notify"),
                                  std::string("vsock:2:1234"), "/" + std::string(200, 'a')}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    NotifyService("READY=1");
  }
  EXPECT_EQ(manager.Heard(), "");
}

// One that ends in time or does not.
class EndingCollector final : public stream::Collector {
 public:
  explicit EndingCollector(bool in_time) : in_time_(in_time) {}

  std::vector<stream::Address> addresses() const override { return {}; }
  bool Stop(std::chrono::milliseconds patience) override {
    patience_ = patience;
    return in_time_;
  }
  absl::Status ReloadCredentials() override { return absl::OkStatus(); }
  Stats stats() const override { return {}; }

  std::chrono::milliseconds patience_{};

 private:
  const bool in_time_;
};

TEST(StopCollector, InOrder) {
  EndingCollector collector(true);
  testing::internal::CaptureStderr();
  EXPECT_EQ(StopCollector(collector, std::chrono::seconds(30)), kExitOk);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(collector.patience_, std::chrono::seconds(30));
}

TEST(StopCollector, WhatWasNotWrittenInTimeIsAnError) {
  EndingCollector collector(false);
  testing::internal::CaptureStderr();
  EXPECT_EQ(StopCollector(collector, std::chrono::seconds(30)), kExitError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "vcpulse: not all that was received could be written within 30 s: it was not "
            "acknowledged, and the agents send it again\n");
}

// All that this user may have; a child gets back what was there before.
TEST(RaiseDescriptorLimit, RaisesTheSoftLimitAndReturnsTheOneBefore) {
  rlimit whole{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &whole), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = whole.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseDescriptorLimit().rlim_cur, 64u);
  rlimit raised{};
  getrlimit(RLIMIT_NOFILE, &raised);
  setrlimit(RLIMIT_NOFILE, &whole);
  EXPECT_EQ(raised.rlim_cur, whole.rlim_max);
  EXPECT_EQ(raised.rlim_max, whole.rlim_max);
}

}  // namespace
}  // namespace vcpulse::tools
