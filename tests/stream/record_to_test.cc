// `vcpulse record --to`, with a collector as a program of its own. What is recorded is a VMM of the
// test, without a guest.

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/fakes/certificates.h"
#include "tests/kvm/tiny_vmm.h"
#include "tests/stream/stream_commands.h"

namespace vcpulse::stream_tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class RecordTo : public StreamCommands {
 protected:
  void SetUp() override {
    if (::access("/dev/kvm", R_OK | W_OK) != 0) {
      GTEST_SKIP() << "/dev/kvm cannot be opened: " << std::strerror(errno);
    }
    ASSERT_GE(vmm_.pid(), 0);
  }

  std::vector<std::string> Record(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"record",   "--pid",       pid_,         "--event-set",
                                       "degraded", "-i",          "10ms",       "--agent-id",
                                       "host-a",   "--spool-dir", Path("spool")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Vcpulse(arguments);
  }

  void MakeCertificates() const {
    ASSERT_TRUE(fakes::MakeAuthority(folder_.root(), "ca"));
    ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "collector", "IP:127.0.0.1"));
    ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "agent", "DNS:host-a"));
  }
  std::vector<std::string> Tls(const std::string& name) const {
    return {"--cert", Path(name + ".pem"), "--key", Path(name + ".key"), "--ca", Path("ca.pem")};
  }

  // A whole recording to a collector that listens there, kept here too.
  void ExpectCollected(const std::string& listen, const std::vector<std::string>& of_collector,
                       std::vector<std::string> of_agent) {
    RunningCollector collector(listen, Path("collected"), of_collector);
    of_agent.insert(of_agent.end(), {"--to", collector.address(), "-o", Path("x.vpt"), "-d", "2s"});
    const Finished finished = RunProgram(Record(of_agent));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err,
                AllOf(HasSubstr("acknowledged, 0 lost\n"), Not(HasSubstr(" not acknowledged"))));
    ASSERT_THAT(StreamsOf("host-a"), SizeIs(1)) << collector.Err();
    ExpectEqual(StreamsOf("host-a")[0], Path("x.vpt"));
    EXPECT_EQ(collector.End().exit_code, 0);
    ExpectEqual(StreamsOf("host-a")[0], Path("x.vpt"));
  }

  kvm_tests::TinyVmm vmm_;
  std::string pid_ = std::to_string(vmm_.pid());
};

TEST_F(RecordTo, OverAUnixSocket) { ExpectCollected("unix:" + Path("c.sock"), {}, {}); }

TEST_F(RecordTo, OverTcp) { ExpectCollected("tcp:127.0.0.1:0", {}, {}); }

TEST_F(RecordTo, OverTls) {
  MakeCertificates();
  ExpectCollected("tls:127.0.0.1:0", Tls("collector"), Tls("agent"));
}

TEST_F(RecordTo, OneFileOfThisNameIsWrittenOnlyWhereItIsAskedFor) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  const fs::path before = fs::current_path();
  fs::create_directories(Path("work"));
  fs::current_path(Path("work"));
  const Finished finished = RunProgram(Record({"--to", collector.address(), "-d", "300ms"}));
  fs::current_path(before);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(fs::is_empty(Path("work")));
  EXPECT_THAT(finished.err, HasSubstr(" bytes to " + collector.address() + "\n"));
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  EXPECT_EQ(RunProgram(Vcpulse({"report", StreamsOf("host-a")[0]})).exit_code, 0);
}

// The second address is used where the first does not answer.
TEST_F(RecordTo, FailsOver) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  const Finished finished =
      RunProgram(Record({"--to", "unix:" + Path("none.sock"), "--to", collector.address(), "-o",
                         Path("x.vpt"), "-d", "300ms", "--drain", "30s"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("streaming to " + collector.address()));
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  ExpectEqual(StreamsOf("host-a")[0], Path("x.vpt"));
}

// What nobody took stays in the spool, and the next recording brings it.
TEST_F(RecordTo, WithoutACollectorTheSpoolKeepsIt) {
  const std::string address = "unix:" + Path("c.sock");
  const Finished alone =
      RunProgram(Record({"--to", address, "-o", Path("1.vpt"), "-d", "300ms", "--drain", "100ms"}));
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.err, AllOf(HasSubstr("cannot stream to " + address),
                               HasSubstr(" stay in " + Path("spool") + " for the next")));
  RunningCollector collector(address, Path("collected"));
  const Finished next =
      RunProgram(Record({"--to", address, "-o", Path("2.vpt"), "-d", "300ms", "--drain", "30s"}));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(2));
  // Both came within a second, perhaps.
  const bool in_order = Joined(StreamsOf("host-a")[0]) == Contents(Path("1.vpt"));
  ExpectEqual(StreamsOf("host-a")[in_order ? 0 : 1], Path("1.vpt"));
  ExpectEqual(StreamsOf("host-a")[in_order ? 1 : 0], Path("2.vpt"));
}

TEST_F(RecordTo, KilledTheSpoolIsSentByTheNext) {
  const std::string address = "unix:" + Path("c.sock");
  RunningProgram killed(Record({"--to", address, "-o", Path("1.vpt")}));
  // Two chunks: the session's, and one of samples.
  ASSERT_TRUE(Eventually([&] {
    uintmax_t bytes = 0;
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(Path("spool"), none)) {
      bytes += entry.is_regular_file() ? entry.file_size() : 0;
    }
    return bytes > 3000 && fs::file_size(Path("1.vpt"), none) > 3000;
  })) << killed.SoFar().err;
  killed.Signal(SIGKILL);
  EXPECT_EQ(killed.Wait().exit_code, 128 + SIGKILL);
  RunningCollector collector(address, Path("collected"));
  const Finished next =
      RunProgram(Record({"--to", address, "-o", Path("2.vpt"), "-d", "300ms", "--drain", "30s"}));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(2));
  const bool in_order = Joined(StreamsOf("host-a")[1]) == Contents(Path("2.vpt"));
  ExpectEqual(StreamsOf("host-a")[in_order ? 1 : 0], Path("2.vpt"));
  // The last chunk may have been on its way to the one and not to the other.
  const std::string first = Joined(StreamsOf("host-a")[in_order ? 0 : 1]);
  const std::string local = Contents(Path("1.vpt"));
  EXPECT_GT(first.size(), 3000u);
  EXPECT_TRUE(first.starts_with(local) || local.starts_with(first));
}

TEST_F(RecordTo, RequireCollectorFailsWithoutOneAndLeavesNothing) {
  const Finished finished = RunProgram(
      Record({"--to", "unix:" + Path("none.sock"), "-o", Path("x.vpt"), "--require-collector"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err,
              HasSubstr("--require-collector: unix:" + Path("none.sock") + ": No such file"));
  EXPECT_FALSE(fs::exists(Path("x.vpt")));
}

// The recording itself is whole; the exit code is about what the collector has.
TEST_F(RecordTo, RequireDeliveryFailsWhereNothingWasDelivered) {
  const std::string address = "unix:" + Path("c.sock");
  const Finished alone = RunProgram(
      Record({"--to", address, "-d", "300ms", "--drain", "100ms", "--require-delivery"}));
  EXPECT_EQ(alone.exit_code, 2) << alone.err;
  EXPECT_THAT(alone.err, ContainsRegex(address + ": 0 of [0-9]+ chunks delivered, 0 lost"));
  RunningCollector collector(address, Path("collected"));
  const Finished next =
      RunProgram(Record({"--to", address, "-d", "300ms", "--drain", "30s", "--require-delivery"}));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(next.err, HasSubstr(" acknowledged, 0 lost"));
}

TEST_F(RecordTo, RequireCollectorGoesOnWithOne) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  const Finished finished =
      RunProgram(Record({"--to", collector.address(), "-d", "100ms", "--require-collector"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(StreamsOf("host-a"), SizeIs(1));
}

// The certificate files are read anew, and the recording goes on.
TEST_F(RecordTo, SighupReadsTheCertificatesAnew) {
  MakeCertificates();
  RunningCollector collector("tls:127.0.0.1:0", Path("collected"), Tls("collector"));
  std::vector<std::string> more = Tls("agent");
  more.insert(more.end(), {"--to", collector.address(), "-o", Path("x.vpt")});
  RunningProgram recording(Record(more));
  ASSERT_TRUE(Eventually([&] {
    return recording.SoFar().err.find("streaming to ") != std::string::npos;
  })) << recording.SoFar().err;
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "agent", "DNS:host-a,DNS:other"));
  recording.Signal(SIGHUP);
  ASSERT_TRUE(Eventually([&] {
    return recording.SoFar().err.find("SIGHUP: connecting anew") != std::string::npos;
  })) << recording.SoFar().err;
  recording.Signal(SIGTERM);
  const Finished finished = recording.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  ExpectEqual(StreamsOf("host-a")[0], Path("x.vpt"));
}

TEST_F(RecordTo, WithoutACollectorSighupEndsItAsEver) {
  RunningProgram recording(
      Vcpulse({"record", "--pid", pid_, "--event-set", "degraded", "-o", Path("x.vpt")}));
  ASSERT_TRUE(Eventually([&] { return fs::exists(Path("x.vpt")); }));
  recording.Signal(SIGHUP);
  EXPECT_EQ(recording.Wait().exit_code, 0);
}

// An interrupt ends the recording, and a second one the wait for the collector.
TEST_F(RecordTo, TheDrainCanBeInterrupted) {
  RunningProgram recording(
      Record({"--to", "unix:" + Path("none.sock"), "-o", Path("x.vpt"), "--drain", "1h"}));
  ASSERT_TRUE(Eventually([&] { return fs::exists(Path("x.vpt")); }));
  recording.Signal(SIGINT);
  ASSERT_TRUE(Eventually(
      [&] { return recording.SoFar().err.find(" vCPU samples, ") != std::string::npos; }));
  // The signal may come before the drain begins, where it ends nothing; but one that comes while
  // the command ends already would kill it, so the next one is far away.
  std::optional<Finished> finished;
  std::jthread again([&recording](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      if (i % 100 == 0) recording.Signal(SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  finished = recording.Wait();
  again.request_stop();
  EXPECT_EQ(finished->exit_code, 0) << finished->err;
  EXPECT_THAT(finished->err, HasSubstr(" stay in "));
}

TEST_F(RecordTo, BadInput) {
  const auto refused = [this](std::vector<std::string> more,
                              const ::testing::Matcher<std::string>& line) {
    more.insert(more.begin(), {"record", "--pid", pid_, "-d", "100ms"});
    ExpectRefused(more, line);
  };
  const std::string to = "unix:" + Path("c.sock");
  refused({"--to", "host:4711"}, AllOf(HasSubstr("--to: "), HasSubstr("unix:PATH")));
  refused({"--to", to, "--format", "delimited"}, HasSubstr("--format delimited and --to"));
  refused({"--spool-size", "1G"}, HasSubstr("--spool-size: it means nothing without --to"));
  refused({"--to", to, "--spool-size", "1000"}, HasSubstr("has no unit"));
  refused({"--to", to, "--spool-size", "1K"}, HasSubstr("less than 1MiB"));
  refused({"--to", to, "--agent-id", "a/../b\n"}, HasSubstr("--agent-id: "));
  refused({"--to", to, "--drain", "5"}, HasSubstr("--drain: "));
  refused({"--to", "tcp:192.0.2.1:4711", "--spool-dir", Path("spool")}, HasSubstr("--insecure"));
  refused({"--to", "tls:127.0.0.1:1"}, HasSubstr("--cert is not given"));
  refused({"--to", to, "--cert", "x", "--key", "x", "--ca", "x"}, HasSubstr("for tls: addresses"));
  refused({"--to", "tls:127.0.0.1:1", "--spool-dir", Path("spool"), "--cert", Path("none.pem"),
           "--key", Path("none.key"), "--ca", Path("none.ca")},
          HasSubstr("none.pem"));
  refused({"--to", to, "-o", ""}, HasSubstr("--output: the value is empty"));
  std::ofstream(Path("file")) << "x";
  refused({"--to", to, "--spool-dir", Path("file/spool")}, HasSubstr(Path("file")));
}

TEST_F(RecordTo, ASpoolThatAnotherUses) {
  RunningProgram first(Record({"--to", "unix:" + Path("none.sock"), "-o", Path("1.vpt")}));
  ASSERT_TRUE(Eventually([&] { return fs::exists(Path("1.vpt")); }));
  const Finished second =
      RunProgram(Record({"--to", "unix:" + Path("none.sock"), "-o", Path("2.vpt")}));
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr(Path("spool")));
  EXPECT_FALSE(fs::exists(Path("2.vpt")));
}

}  // namespace
}  // namespace vcpulse::stream_tests
