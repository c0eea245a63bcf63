// `vcpulse collect` as a program of its own. Needs no guest.

#include <sys/stat.h>

#include <chrono>
#include <random>

#include "tests/fakes/certificates.h"
#include "tests/fakes/http_client.h"
#include "tests/stream/stream_commands.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::stream_tests {
namespace {

using check::DrawnRecording;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Collect : public StreamCommands {
 protected:
  // A timeline under the name of `agent`.
  static Finished Send(const std::string& address, const std::string& agent,
                       std::vector<std::string> more = {}) {
    DrawnRecording drawn;
    drawn.Draw("PPP");
    std::vector<std::string> arguments{"replay",  drawn.Finish(), "--to",       address,
                                       "--speed", "max",          "--agent-id", agent};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(Vcpulse(arguments));
  }

  // A file of 1 MiB that an earlier collector left, changed so long ago.
  fs::path LaidOut(const std::string& agent, const std::string& start,
                   std::chrono::hours age) const {
    const fs::path folder =
        Path("collected/" + agent + "/" + start + "-000000000000000000000000000000aa");
    fs::create_directories(folder);
    fs::path file = folder / "00000000000000000001.vpt";
    std::ofstream(file) << std::string(1u << 20, 'x');
    fs::last_write_time(file, fs::file_time_type::clock::now() - age);
    return file;
  }

  std::vector<std::string> Tls(const std::string& name) const {
    return {"--cert", Path(name + ".pem"), "--key", Path(name + ".key"), "--ca", Path("ca.pem")};
  }
  // The port behind the last colon.
  static uint16_t PortOf(const std::string& address) {
    return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
};

TEST_F(Collect, BadInput) {
  const auto refused = [this](std::vector<std::string> more,
                              const ::testing::Matcher<std::string>& line) {
    more.insert(more.begin(), "collect");
    if (std::ranges::find(more, "--listen") == more.end()) {
      more.insert(more.end(), {"--listen", "unix:" + Path("c.sock")});
    }
    more.insert(more.end(), {"--dir", Path("collected")});
    ExpectRefused(more, line);
    EXPECT_FALSE(fs::exists(Path("c.sock")));
  };
  ExpectRefused({"collect", "--dir", Path("x")}, HasSubstr("--listen"));
  ExpectRefused({"collect", "--listen", "unix:x"}, HasSubstr("--dir"));
  refused({"--listen", "4711"}, AllOf(HasSubstr("--listen: "), HasSubstr("tcp:HOST:PORT")));
  refused({"--listen", "tcp:0.0.0.0:0"}, HasSubstr("--insecure"));
  refused({"--listen", "tls:127.0.0.1:0"}, HasSubstr("--cert is not given"));
  refused({"--cert", "a", "--key", "b", "--ca", "c"}, HasSubstr("for tls: addresses"));
  refused({"--listen", "tls:127.0.0.1:0", "--cert", Path("none.pem"), "--key", Path("none.key"),
           "--ca", Path("none.ca")},
          HasSubstr("none.pem"));
  refused({"--allow-uid", "no-such-user"}, HasSubstr("'no-such-user' is not a user"));
  refused({"--allow-uid", "4294967295=a"}, HasSubstr("is not a user"));
  refused({"--allow-uid", "65534"}, HasSubstr("write 65534=AGENT-ID"));
  refused({"--allow-uid", "65534=a,"}, HasSubstr("--allow-uid: "));
  refused({"--listen", "tcp:127.0.0.1:0", "--allow-uid", "0=a"}, HasSubstr("for unix: sockets"));
  refused({"--allow-follower", "a"}, HasSubstr("there is neither"));
  refused({"--max-connections", "0"}, HasSubstr("--max-connections: '0' is not a number"));
  refused({"--peer-rate", "1K"}, HasSubstr("--peer-rate: 1K is less than 16 KiB"));
  refused({"--rotate-size", "100"}, HasSubstr("--rotate-size: '100' has no unit"));
  refused({"--rotate-size", "1K"}, HasSubstr("less than 1 MiB"));
  refused({"--rotate-every", "1ms"}, HasSubstr("--rotate-every: 1ms is less than 1s"));
  refused({"--keep-for", "30"}, HasSubstr("write 30h or 30d"));
  refused({"--keep-size", "1"}, HasSubstr("--keep-size: "));
  refused({"--rollup", "7"}, HasSubstr("--rollup: '7' has no unit: write 7s or 7ms"));
  refused({"--rollup", "10s,10s"}, HasSubstr("--rollup: '10s' is given twice"));
  refused({"--rollup", "1500ms"}, HasSubstr("--rollup: '1.5s' is not whole seconds"));
  ExpectRefused(
      {"collect", "--from", "nats://127.0.0.1:4222", "--dir", Path("collected"), "--rollup", "10s"},
      HasSubstr("--rollup: collectors of a broker each hold a part of a stream"));
  ExpectRefused({"collect", "--from", "nats://127.0.0.1:4222", "--dir", Path("collected"),
                 "--parquet", Path("ticks")},
                HasSubstr("run `vcpulse export --format parquet` over the stream's folders"));
  refused({"--parquet", "/dev/null/x"}, HasSubstr("--parquet: cannot make directory /dev/null"));
  refused({"--keep", "parquet=2d"}, HasSubstr("--keep: parquet means nothing without --parquet"));
  refused({"--keep", "2d"}, HasSubstr("--keep: '2d' is not LEVEL=DURATION: write raw=2d"));
  refused({"--keep", "raw=2"}, HasSubstr("--keep: '2' has no unit"));
  refused({"--keep", "raw=2d,raw=3d"}, HasSubstr("--keep: 'raw' is given twice"));
  refused({"--keep", "10s=2d"}, HasSubstr("--keep: no level '10s'; levels are: raw"));
  refused({"--keep", "raw=2d", "--keep-for", "2d"}, HasSubstr("cannot be combined with"));
  refused({"--status", "unix:/x"}, HasSubstr("--status: unix:/x: it answers HTTP"));
  refused({"--status", "tcp:0.0.0.0:0"}, HasSubstr("--status: other machines can reach"));
}

TEST_F(Collect, PlacesThatCannotBeUsed) {
  std::ofstream(Path("file")) << "x";
  ExpectRefused({"collect", "--listen", "unix:" + Path("c.sock"), "--dir", Path("file/below")},
                HasSubstr(Path("file")));
  const RunningCollector first("tcp:127.0.0.1:0", Path("collected"));
  ExpectRefused({"collect", "--listen", "unix:" + Path("c.sock"), "--dir", Path("collected")},
                AllOf(HasSubstr(Path("collected")), HasSubstr("another collector")));
  ExpectRefused({"collect", "--listen", first.address(), "--dir", Path("other")},
                AllOf(HasSubstr(first.address()), HasSubstr("in use")));
}

TEST_F(Collect, SeveralAddressesAndTheModeOfTheSocket) {
  RunningCollector collector("unix:" + Path("c.sock"), Path("collected"),
                             {"--listen", "tcp:127.0.0.1:0"});
  const std::string tcp = collector.After("listening on tcp:127.0.0.1:");
  ASSERT_NE(tcp, "") << collector.Err();
  EXPECT_EQ(Send("unix:" + Path("c.sock"), "host-a").exit_code, 0);
  EXPECT_EQ(Send("tcp:127.0.0.1:" + tcp, "host-b").exit_code, 0);
  EXPECT_THAT(StreamsOf("host-a"), SizeIs(1));
  EXPECT_THAT(StreamsOf("host-b"), SizeIs(1));
  struct stat info{};
  ASSERT_EQ(stat(Path("c.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const Finished finished = collector.End();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_FALSE(fs::exists(Path("c.sock")));
}

TEST_F(Collect, InterruptedItEndsInOrder) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  EXPECT_EQ(collector.End(SIGINT).exit_code, 0);
}

TEST_F(Collect, StatusOverHttp) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"), {"--status", "tcp:127.0.0.1:0"});
  const uint16_t port = PortOf(collector.After("status at "));
  EXPECT_EQ(Send(collector.address(), "host-a").exit_code, 0);
  const std::string health = fakes::HttpGet(port, "/healthz");
  EXPECT_THAT(health, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\n\r\nok")));
  const std::string metrics = fakes::HttpGet(port, "/metrics");
  EXPECT_THAT(metrics, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("# TYPE"),
                             HasSubstr("agent=\"host-a\"")));
  EXPECT_THAT(fakes::HttpGet(port, "/"), StartsWith("HTTP/1.1 404"));
}

TEST_F(Collect, ThePortOfTheStatusIsTaken) {
  RunningCollector first("tcp:127.0.0.1:0", Path("collected"), {"--status", "tcp:127.0.0.1:0"});
  const std::string status = first.After("status at ");
  const Finished second = RunProgram(Vcpulse(
      {"collect", "--listen", "tcp:127.0.0.1:0", "--dir", Path("other"), "--status", status}));
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr("--status: "));
}

TEST_F(Collect, SighupReadsTheCertificatesAnew) {
  ASSERT_TRUE(fakes::MakeAuthority(folder_.root(), "ca"));
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "collector", "IP:127.0.0.1"));
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "agent", "DNS:host-a"));
  RunningCollector collector("tls:127.0.0.1:0", Path("collected"), Tls("collector"));
  EXPECT_EQ(Send(collector.address(), "host-a", Tls("agent")).exit_code, 0) << collector.Err();
  // Another agent's name is not in that certificate.
  EXPECT_EQ(Send(collector.address(), "host-b", Tls("agent")).exit_code, 2);
  EXPECT_THAT(StreamsOf("host-b"), SizeIs(0));

  std::ofstream(Path("collector.pem")) << "no certificate";
  collector.program().Signal(SIGHUP);
  EXPECT_TRUE(
      Eventually([&] { return !collector.After("certificates stay as they were").empty(); }));
  EXPECT_EQ(Send(collector.address(), "host-a", Tls("agent")).exit_code, 0);
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "collector", "IP:127.0.0.1"));
  collector.program().Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return !collector.After("files were reloaded").empty(); }))
      << collector.Err();
  EXPECT_EQ(Send(collector.address(), "host-a", Tls("agent")).exit_code, 0);
}

TEST_F(Collect, SighupWithoutCertificatesSaysSoAndGoesOn) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  collector.program().Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return !collector.After("SIGHUP: there are no").empty(); }));
  EXPECT_EQ(Send(collector.address(), "host-a").exit_code, 0);
}

// What lies there when it starts, by age.
TEST_F(Collect, OldFilesGo) {
  const fs::path old = LaidOut("host-a", "20260101T000000Z", std::chrono::hours(48));
  const fs::path young = LaidOut("host-b", "20260102T000000Z", std::chrono::hours(1));
  std::ofstream(old.parent_path().parent_path() / "notes") << "mine";
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"), {"--keep-for", "24h"});
  // With the first that comes, or within a minute.
  EXPECT_EQ(Send(collector.address(), "host-a").exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(old.parent_path()); })) << collector.Err();
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(Path("collected/host-a/notes")));
  EXPECT_EQ(collector.End().exit_code, 0);
  EXPECT_TRUE(fs::exists(young));
}

// Of each length, in folders by date and host; a stream that has ended is rolled up at once.
TEST_F(Collect, RollupsAreKeptBesideTheTimelines) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"),
                             {"--rollup", "1s,1m", "--keep", "raw=1d"});
  EXPECT_EQ(Send(collector.address(), "host-a").exit_code, 0);
  const std::string name = std::string(32, '0').replace(1, 1, "1") + "-20260102T030400Z.csv";
  const fs::path seconds = Path("collected/.rollup/1s/date=2026-01-02/host=host-a/" + name);
  const fs::path minutes = Path("collected/.rollup/1m/date=2026-01-02/host=host-a");
  EXPECT_TRUE(Eventually([&] { return fs::exists(seconds) && fs::exists(minutes); }))
      << collector.Err();
  const Finished rolled = RunProgram(Vcpulse({"rollup", Path("collected"), "--window", "1s"}));
  EXPECT_EQ(rolled.exit_code, 0) << rolled.err;
  EXPECT_EQ(Contents(seconds), rolled.out);
  EXPECT_EQ(collector.End().exit_code, 0);
}

// The oldest first, until the rest is small enough.
TEST_F(Collect, FilesBeyondTheSizeGo) {
  const fs::path oldest = LaidOut("host-a", "20260101T000000Z", std::chrono::hours(3));
  const fs::path older = LaidOut("host-b", "20260102T000000Z", std::chrono::hours(2));
  const fs::path young = LaidOut("host-c", "20260103T000000Z", std::chrono::hours(1));
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"), {"--keep-size", "2500K"});
  EXPECT_EQ(Send(collector.address(), "host-d").exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(oldest); })) << collector.Err();
  EXPECT_EQ(collector.End().exit_code, 0);
  EXPECT_TRUE(fs::exists(older));
  EXPECT_TRUE(fs::exists(young));
}

// Without being asked it removes nothing.
TEST_F(Collect, AllIsKeptUnlessAskedOtherwise) {
  const fs::path old = LaidOut("host-a", "20200101T000000Z", std::chrono::hours(50'000));
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  EXPECT_EQ(Send(collector.address(), "host-b").exit_code, 0);
  EXPECT_EQ(collector.End().exit_code, 0);
  EXPECT_TRUE(fs::exists(old));
}

TEST_F(Collect, FilesRotateBySize) {
  DrawnRecording drawn;
  std::string file;
  {
    // Longer than a file may be, in chunks that do not shrink.
    std::minstd_rand random(1);
    for (int i = 0; i < 18; ++i) {
      std::string noise;
      for (int n = 0; n < 100'000; ++n) noise += static_cast<char>('0' + random() % 64);
      drawn.Draw("[" + noise + "]");
      drawn.Draw("P");
      drawn.Flush();
    }
    file = drawn.Finish();
  }
  ASSERT_GT(fs::file_size(file), 5u << 18);
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"), {"--rotate-size", "1M"});
  const Finished sent = RunProgram(Vcpulse(
      {"replay", file, "--to", collector.address(), "--speed", "max", "--agent-id", "host-a"}));
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(StreamsOf("host-a")[0])) {
    ++files;
    EXPECT_LT(entry.file_size(), (1u << 20) + 200'000) << entry.path();
  }
  EXPECT_EQ(files, (fs::file_size(file) >> 20) + 1);
  ExpectEqual(StreamsOf("host-a")[0], file);
}

TEST_F(Collect, AnAgentMayBeCalledLock) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  EXPECT_EQ(Send(collector.address(), "lock").exit_code, 0) << collector.Err();
  EXPECT_THAT(StreamsOf("lock"), SizeIs(1));
}

// What was acknowledged outlives a kill, and the next collector goes on from there.
TEST_F(Collect, KilledAndStartedAgain) {
  DrawnRecording drawn;
  for (int i = 0; i < 10; ++i) {
    drawn.Draw("PSH");
    drawn.Flush();
  }
  const std::string file = drawn.Finish();
  const std::string address = "unix:" + Path("c.sock");
  const std::vector<std::string> replay =
      Vcpulse({"replay", file, "--to", address, "--speed", "max", "--agent-id", "host-a"});
  {
    RunningCollector collector(address, Path("collected"));
    EXPECT_EQ(RunProgram(replay).exit_code, 0);
    EXPECT_EQ(collector.End(SIGKILL).exit_code, 128 + SIGKILL);
  }
  RunningCollector collector(address, Path("collected"));
  const Finished again = RunProgram(replay);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("0 sent, 11 acknowledged"));
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  ExpectEqual(StreamsOf("host-a")[0], file);
}

}  // namespace
}  // namespace vcpulse::stream_tests
