// One collector for several: two agents at once over each kind of address, and ten thousand
// connections that say nothing beside one that does.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "kvm/base/fd.h"
#include "tests/fakes/certificates.h"
#include "tests/stream/stream_commands.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::stream_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Crowd : public StreamCommands {
 protected:
  // Replays two timelines at once as two agents; both arrive as they are.
  void ExpectBothArrive(const RunningCollector& collector,
                        const std::vector<std::string>& first_options = {},
                        const std::vector<std::string>& second_options = {}) {
    const std::string data = VCPULSE_TEST_DATA;
    const auto replay = [&](const std::string& file, const std::string& agent,
                            const std::vector<std::string>& more) {
      std::vector<std::string> arguments{"replay",  file,  "--to",       collector.address(),
                                         "--speed", "max", "--agent-id", agent};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return Vcpulse(arguments);
    };
    RunningProgram first(replay(data + "/timeline-v1.vpt", "host-a", first_options));
    RunningProgram second(replay(data + "/timeline-v2.vpt", "host-b", second_options));
    EXPECT_EQ(first.Wait().exit_code, 0);
    EXPECT_EQ(second.Wait().exit_code, 0);
    ASSERT_THAT(StreamsOf("host-a"), SizeIs(1)) << collector.Err();
    ASSERT_THAT(StreamsOf("host-b"), SizeIs(1)) << collector.Err();
    ExpectEqual(StreamsOf("host-a")[0], data + "/timeline-v1.vpt");
    ExpectEqual(StreamsOf("host-b")[0], data + "/timeline-v2.vpt");
  }
};

TEST_F(Crowd, TwoAgentsOverAUnixSocket) {
  const RunningCollector collector("unix:" + Path("c.sock"), Path("collected"));
  ExpectBothArrive(collector);
}

TEST_F(Crowd, TwoAgentsOverTcp) {
  const RunningCollector collector("tcp:[::1]:0", Path("collected"));
  ExpectBothArrive(collector);
}

TEST_F(Crowd, TwoAgentsOverTls) {
  const std::string folder = Path(".");
  ASSERT_TRUE(fakes::MakeAuthority(folder, "ca"));
  ASSERT_TRUE(fakes::MakeCertificate(folder, "ca", "server", "IP:127.0.0.1"));
  ASSERT_TRUE(fakes::MakeCertificate(folder, "ca", "a", "DNS:host-a"));
  ASSERT_TRUE(fakes::MakeCertificate(folder, "ca", "b", "DNS:host-b"));
  const auto credentials = [&](const std::string& name) -> std::vector<std::string> {
    return {"--cert", Path(name + ".pem"), "--key", Path(name + ".key"), "--ca", Path("ca.pem")};
  };
  const RunningCollector collector("tls:127.0.0.1:0", Path("collected"), credentials("server"));
  ExpectBothArrive(collector, credentials("a"), credentials("b"));
}

TEST_F(Crowd, TenThousandConnectionsKeepNobodyOut) {
  constexpr int kConnections = 10'000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < kConnections + 100) {
    GTEST_SKIP() << "this user may have " << limit.rlim_max << " descriptors, the test needs "
                 << kConnections + 100;
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  RunningCollector collector("unix:" + Path("c.sock"), Path("collected"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, Path("c.sock").c_str(), sizeof(address.sun_path) - 1);
  std::vector<Fd> crowd;
  for (int i = 0; i < kConnections; ++i) {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(fd.valid());
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << i;
    crowd.push_back(std::move(fd));
  }
  const std::string file = std::string(VCPULSE_TEST_DATA) + "/timeline-v2.vpt";
  const Finished sent = RunProgram(Vcpulse(
      {"replay", file, "--to", collector.address(), "--speed", "max", "--agent-id", "host-a"}));
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  ExpectEqual(StreamsOf("host-a")[0], file);
  crowd.clear();
  EXPECT_EQ(collector.End().exit_code, 0);
}

// Whoever has the agent's socket could send in its name.
TEST_F(Crowd, ACommandBesideARecordingDoesNotGetItsSocket) {
  const RunningCollector collector("unix:" + Path("c.sock"), Path("collected"));
  const Finished finished = RunProgram(Vcpulse(
      {"record", "--to", collector.address(), "--agent-id", "host-a", "--spool-dir", Path("spool"),
       "--require-collector", "--event-set", "degraded", "--control", Path("ctl"), "--", "sh", "-c",
       absl::StrCat("ls -l /proc/self/fd; ", Vcpulse({}).front(), " mark x")}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("streaming to"));
  EXPECT_THAT(finished.out, HasSubstr("-> "));
  EXPECT_THAT(finished.out, ::testing::Not(HasSubstr("socket:")));
}

}  // namespace
}  // namespace vcpulse::stream_tests
