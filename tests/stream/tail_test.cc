// `vcpulse tail`, of folders and of a collector. Needs no guest.

#include <netdb.h>

#include "monitor/timeline/chunk_header.h"
#include "tests/fakes/certificates.h"
#include "tests/stream/stream_commands.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::stream_tests {
namespace {

using check::DrawnRecording;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::string> kStatus = {"--status", "tcp:127.0.0.1:0"};

class Tail : public StreamCommands {
 protected:
  static std::string Drawn(DrawnRecording& drawn, const std::string& letters) {
    for (const char letter : letters) {
      drawn.Draw(std::string(1, letter));
      drawn.Flush();
    }
    return drawn.Finish();
  }
  // Sends a timeline under the name of `agent`.
  static void Send(const std::string& address, const std::string& agent,
                   const std::string& letters) {
    DrawnRecording drawn;
    const Finished sent = RunProgram(Vcpulse(
        {"replay", Drawn(drawn, letters), "--to", address, "--speed", "max", "--agent-id", agent}));
    EXPECT_EQ(sent.exit_code, 0) << sent.err;
  }
  static ::testing::AssertionResult Prints(const RunningProgram& tail, const std::string& text) {
    if (Eventually([&] { return tail.SoFar().out.find(text) != std::string::npos; })) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << tail.SoFar().out << tail.SoFar().err;
  }
};

TEST_F(Tail, OfACollectorsFolder) {
  RunningCollector collector("tcp:127.0.0.1:0", Path("collected"));
  Send(collector.address(), "host-a", "HSP");
  RunningProgram tail(Vcpulse({"tail", Path("collected"), "-n", "1"}));
  EXPECT_TRUE(Prints(tail, "host-a  "));
  Send(collector.address(), "host-b", "PP");
  EXPECT_TRUE(Prints(tail, "host-b  "));
  tail.Signal(SIGINT);
  const Finished finished = tail.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  // Of what was there one tick, of what came all.
  EXPECT_EQ(std::ranges::count(finished.out, '\n'), 1 + 3) << finished.out;
  EXPECT_THAT(finished.out, AllOf(StartsWith("host-a  "), HasSubstr("  guest1  #  IPC 2.00\n")));
}

TEST_F(Tail, OfACollector) {
  RunningCollector collector("unix:" + Path("c.sock"), Path("collected"), kStatus);
  Send(collector.address(), "host-a", "HSP");
  RunningProgram all(Vcpulse({"tail", collector.address(), "--format", "jsonl"}));
  RunningProgram one(
      Vcpulse({"tail", collector.address(), "--agent", "host-c", "--format", "jsonl"}));
  ASSERT_TRUE(Eventually([&] { return collector.followers() == 2; })) << collector.Err();
  Send(collector.address(), "host-b", "SP");
  Send(collector.address(), "host-c", "HP");
  EXPECT_TRUE(Prints(all, "host-c"));
  EXPECT_TRUE(Prints(one, "host-c"));
  EXPECT_THAT(all.SoFar().out, StartsWith("{\"agent\":\"host-"));
  all.Signal(SIGTERM);
  one.Signal(SIGTERM);
  const Finished finished = all.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  // As many rows as it is told of them in.
  const std::string wanted = one.Wait().out;
  EXPECT_THAT(wanted, StartsWith("{\"agent\":\"host-c\",\"t_mono_ns\":"));
  size_t rows = 0;
  for (size_t at = 0; (at = wanted.find("\"agent\":\"host-c\"", at)) != std::string::npos; ++at) {
    ++rows;
  }
  EXPECT_EQ(rows, std::ranges::count(wanted, '\n')) << wanted;
}

// The same again over another connection, and what it missed in between.
TEST_F(Tail, GoesOnWhereTheCollectorComesBack) {
  const std::string address = "unix:" + Path("c.sock");
  DrawnRecording drawn;
  const std::string whole = Contents(Drawn(drawn, "HSP"));
  std::vector<size_t> chunks;
  for (size_t at = 0; at != std::string::npos; at = whole.find("\x89VPT", at + 1)) {
    chunks.push_back(at);
  }
  ASSERT_EQ(chunks.size(), 4u);
  // The first so many chunks, as host-a.
  const auto send = [&](size_t count) {
    std::ofstream(Path("part.vpt"), std::ios::binary) << whole.substr(0, chunks[count]);
    const Finished sent = RunProgram(Vcpulse(
        {"replay", Path("part.vpt"), "--to", address, "--speed", "max", "--agent-id", "host-a"}));
    EXPECT_EQ(sent.exit_code, 0) << sent.err;
  };
  std::optional<RunningCollector> collector(std::in_place, address, Path("collected"));
  setenv("TZ", "UTC", 1);
  RunningProgram tail(Vcpulse({"tail", address}));
  int probes = 0;
  EXPECT_TRUE(Eventually([&] {  // it is there when it says so
    Send(address, "probe-" + std::to_string(++probes), "U");
    return !tail.SoFar().out.empty();
  }));
  send(1);
  EXPECT_TRUE(Prints(tail, "  guest1  .  "));
  tail.Signal(SIGSTOP);
  EXPECT_EQ(collector->End().exit_code, 0);
  collector.emplace(address, Path("collected"));
  send(2);
  tail.Signal(SIGCONT);
  const std::string back =
      "vcpulse: " + address + " is there again; what came meanwhile is not shown\n";
  EXPECT_TRUE(Eventually([&] { return tail.SoFar().err.find(back) != std::string::npos; }));
  send(3);
  EXPECT_TRUE(Prints(tail, "  guest1  #  "));
  // One that has nothing is sent everything, and sends it on.
  EXPECT_EQ(collector->End(SIGKILL).exit_code, 128 + SIGKILL);
  fs::remove_all(Path("collected/host-a"));
  collector.emplace(address, Path("collected"));
  EXPECT_TRUE(
      Eventually([&] { return tail.SoFar().err.rfind(back) > tail.SoFar().err.find(back); }));
  send(3);
  Send(address, "host-b", "U");
  EXPECT_TRUE(Prints(tail, "host-b  03:04:05.100"));
  // Ends also while nobody is there.
  EXPECT_EQ(collector->End().exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return std::ranges::count(tail.SoFar().err, '\n') == 5; }));
  tail.Signal(SIGINT);
  const Finished finished = tail.Wait();
  EXPECT_EQ(finished.exit_code, 0);
  const std::string lost = "vcpulse: the collector was lost: " + address + ": ";
  EXPECT_THAT(finished.err,
              AllOf(StartsWith(lost), HasSubstr("; trying again\n" + back + lost),
                    HasSubstr("\nvcpulse: warning: 1 record did not come from the collector")));
  EXPECT_THAT(finished.out,
              HasSubstr("host-a  03:04:05.000  guest1  -  IPC -\n"
                        "host-a  03:04:05.100  guest1  .  IPC -\n"
                        "host-a  missed: records 6 to 6: they did not come from the collector\n"
                        "host-a  03:04:05.300  guest1  #  IPC 2.00\n"
                        "host-b  03:04:05.000  "));
}

// A chunk with good checksums that holds no records. It comes as far as the collector's disk; who
// looks on is told of it, once, and sees the other agents.
TEST_F(Tail, RubbishOfOneAgent) {
  const std::string content = "\xff\xff rubbish";
  const std::vector<uint8_t> payload(content.begin(), content.end());
  const auto header =
      timeline::EncodeChunkHeader({.payload_bytes = static_cast<uint32_t>(payload.size()),
                                   .content_bytes = static_cast<uint32_t>(payload.size()),
                                   .stream_id = {7, 7},
                                   .first_sequence = 1,
                                   .last_sequence = 1,
                                   .payload_crc = timeline::Crc32c(payload)});
  std::ofstream(Path("rubbish.vpt"), std::ios::binary)
      << std::string(header.begin(), header.end()) << content;
  RunningCollector collector("unix:" + Path("c.sock"), Path("collected"), kStatus);
  const std::string warning =
      "vcpulse: warning: host-x: skipped a chunk that cannot be read: the content is no";
  RunningProgram live(Vcpulse({"tail", collector.address()}));
  ASSERT_TRUE(Eventually([&] { return collector.followers() == 1; })) << collector.Err();
  const Finished sent = RunProgram(Vcpulse(
      {"replay", Path("rubbish.vpt"), "--to", collector.address(), "--agent-id", "host-x"}));
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  EXPECT_TRUE(Eventually([&] { return live.SoFar().err.find(warning) != std::string::npos; }))
      << live.SoFar().err;
  Send(collector.address(), "host-a", "HSP");
  EXPECT_TRUE(Prints(live, "host-a  "));
  live.Signal(SIGTERM);
  EXPECT_EQ(live.Wait().exit_code, 0);

  const Finished folder =
      RunProgram(Vcpulse({"tail", Path("collected"), "--from-start", "--duration", "1ms"}));
  EXPECT_EQ(folder.exit_code, 0);
  EXPECT_THAT(folder.err, AllOf(StartsWith(warning), HasSubstr("1 chunk could not be read\n")));
  EXPECT_EQ(std::ranges::count(folder.out, '\n'), 4) << folder.out;
}

class TailOverTls : public Tail {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fakes::MakeAuthority(folder_.root(), "ca"));
    ASSERT_TRUE(fakes::MakeAuthority(folder_.root(), "strangers"));
    ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "collector", "IP:127.0.0.1"));
    ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "host-a", "DNS:host-a"));
    ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "host-b", "DNS:host-b"));
    ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "watcher", "DNS:watcher"));
    collector_.emplace(
        "tls:127.0.0.1:0", Path("collected"),
        With("collector", {"--allow-follower", "watcher", "--status", "tcp:127.0.0.1:0"}));
  }
  // The arguments, and the files of `name`.
  std::vector<std::string> With(const std::string& name, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--cert", Path(name + ".pem"), "--key", Path(name + ".key"),
                                       "--ca", Path("ca.pem")});
    return arguments;
  }
  std::vector<std::string> TailBy(const std::string& name,
                                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"tail", collector_->address(), "--agent-id", name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"-d", "60s"});  // where it is let in though it should not be
    return With(name, arguments);
  }

  std::optional<RunningCollector> collector_;
};

TEST_F(TailOverTls, FollowsItsOwnNamesOrAllWhereAllowed) {
  RunningProgram all(Vcpulse(TailBy("watcher")));
  RunningProgram own(Vcpulse(TailBy("host-a")));
  ASSERT_TRUE(Eventually([&] { return collector_->followers() == 2; })) << collector_->Err();
  for (const std::string agent : {"host-b", "host-a"}) {
    DrawnRecording drawn;
    const Finished sent = RunProgram(
        Vcpulse(With(agent, {"replay", Drawn(drawn, "HSP"), "--to", collector_->address(),
                             "--speed", "max", "--agent-id", agent})));
    EXPECT_EQ(sent.exit_code, 0) << sent.err;
  }
  EXPECT_TRUE(Prints(all, "host-a  "));
  EXPECT_TRUE(Prints(own, "host-a  "));
  EXPECT_THAT(all.SoFar().out, StartsWith("host-b  "));
  EXPECT_THAT(own.SoFar().out, Not(HasSubstr("host-b")));
  for (RunningProgram* tail : {&all, &own}) {
    tail->Signal(SIGTERM);
    const Finished finished = tail->Wait();
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
  }
}

TEST_F(TailOverTls, WhoIsNotLetIn) {
  ExpectRefused(TailBy("host-a", {"--agent", "host-b"}),
                AllOf(HasSubstr(collector_->address()),
                      HasSubstr("'host-a' may only follow the agent ids that it may use itself")));
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "other", "DNS:elsewhere"));
  ExpectRefused(TailBy("other"), HasSubstr("the certificate is not that of agent 'other'"));
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "strangers", "strange", "DNS:watcher"));
  ExpectRefused(TailBy("strange"), HasSubstr("unknown ca"));
  ASSERT_TRUE(fakes::MakeCertificate(folder_.root(), "ca", "old", "DNS:watcher", "2020-01-02"));
  ExpectRefused(TailBy("old"), HasSubstr("has expired"));
}

// The collector's certificate must be of the host that was asked for.
TEST_F(TailOverTls, AnotherHostsCertificate) {
  addrinfo* found = nullptr;
  ASSERT_EQ(::getaddrinfo("localhost", nullptr, nullptr, &found), 0)
      << "this test needs an address of localhost: add it to /etc/hosts";
  ::freeaddrinfo(found);
  const std::string port = collector_->address().substr(collector_->address().rfind(':'));
  ExpectRefused(
      With("watcher", {"tail", "tls:localhost" + port, "--agent-id", "watcher", "-d", "10s"}),
      AllOf(HasSubstr("tls:localhost" + port), HasSubstr("does not name localhost")));
}

TEST_F(Tail, OfAFileThatGrows) {
  DrawnRecording drawn;
  const std::string whole = Contents(Drawn(drawn, "HSPP"));
  const size_t half = whole.size() / 2;
  std::ofstream(Path("x.vpt"), std::ios::binary) << whole.substr(0, half);
  RunningProgram tail(Vcpulse({"tail", Path("x.vpt"), "--from-start"}));
  EXPECT_TRUE(Prints(tail, "guest1"));
  std::ofstream(Path("x.vpt"), std::ios::binary | std::ios::app) << whole.substr(half);
  ASSERT_TRUE(Eventually([&] { return std::ranges::count(tail.SoFar().out, '\n') == 5; }))
      << tail.SoFar().out;
  tail.Signal(SIGINT);
  EXPECT_EQ(tail.Wait().exit_code, 0);
}

// The same rows as those of `export`, but for whose they are.
TEST_F(Tail, JsonRowsAreThoseOfExport) {
  DrawnRecording drawn;
  const std::string file = Drawn(drawn, "HSPPUsp");
  const Finished rows = RunProgram(Vcpulse({"export", file, "--format", "jsonl"}));
  const Finished tailed =
      RunProgram(Vcpulse({"tail", file, "--from-start", "--format", "jsonl", "--duration", "1ms"}));
  EXPECT_EQ(tailed.exit_code, 0) << tailed.err;
  std::string without = tailed.out;
  const std::string agent = "\"agent\":null,";
  for (size_t at = without.find(agent); at != std::string::npos; at = without.find(agent, at)) {
    without.erase(at, agent.size());
  }
  EXPECT_EQ(without, rows.out);
}

TEST_F(Tail, TenTicksUnlessAskedOtherwise) {
  DrawnRecording drawn;
  const std::string file = Drawn(drawn, std::string(30, 'P'));
  const auto lines = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"tail", file, "--duration", "1ms"});
    const Finished finished = RunProgram(Vcpulse(more));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return std::ranges::count(finished.out, '\n');
  };
  EXPECT_EQ(lines({}), 10);
  EXPECT_EQ(lines({"-n", "3"}), 3);
  EXPECT_EQ(lines({"-n", "0"}), 0);
  EXPECT_EQ(lines({"--from-start"}), 31);  // an epoch's first sample is one
}

TEST_F(Tail, AReaderThatHasSeenEnoughEndsIt) {
  DrawnRecording drawn;
  const std::string file = Drawn(drawn, "HSPP");
  const Finished finished =
      RunProgram({"sh", "-c", "\"$0\" tail \"$1\" --from-start | head -n 1; exit 0",
                  Vcpulse({}).front(), file});
  // It may have come to the recording's end before.
  EXPECT_THAT(finished.err, AnyOf("", StartsWith("vcpulse: the recording has ended; ")));
}

TEST_F(Tail, SaysThatItWaitsWhereNothingComes) {
  const Finished finished = RunProgram(Vcpulse({"tail", folder_.root(), "-d", "100ms"}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "vcpulse: waiting for data from " + folder_.root() + "\n");
  DrawnRecording drawn;
  const Finished fed = RunProgram(Vcpulse({"tail", Drawn(drawn, "HSPP"), "-d", "1500ms"}));
  EXPECT_THAT(fed.err, StartsWith("vcpulse: the recording has ended; "));
  EXPECT_THAT(fed.err, Not(HasSubstr("waiting for data")));
}

TEST_F(Tail, SaysWhichAgentsThereAre) {
  DrawnRecording drawn;
  const std::string file = Drawn(drawn, "HSPP");
  for (const std::string agent : {"host-b", "host=3Aa"}) {
    const std::filesystem::path stream = std::filesystem::path(Path("kept")) / agent /
                                         "20261122T072146Z-07000000000000000000000000000000";
    std::filesystem::create_directories(stream);
    std::filesystem::copy_file(file, stream / "00000000000000000001.vpt");
  }
  const Finished nobody =
      RunProgram(Vcpulse({"tail", Path("kept"), "--agent", "nope", "-d", "100ms"}));
  EXPECT_EQ(nobody.exit_code, 0);
  EXPECT_EQ(nobody.out, "");
  EXPECT_EQ(nobody.err, "vcpulse: --agent: no agent 'nope' in " + Path("kept") +
                            " yet; agents are: host-b, host:a\n");
  const Finished one =
      RunProgram(Vcpulse({"tail", Path("kept"), "--agent", "host:a", "-d", "100ms"}));
  EXPECT_THAT(one.err, Not(HasSubstr("no agent")));
  EXPECT_THAT(one.out, Not(IsEmpty()));
}

TEST_F(Tail, BadInput) {
  ExpectRefused({"tail"}, HasSubstr("SOURCE"));
  ExpectRefused({"tail", Path("none")}, HasSubstr(Path("none")));
  ExpectRefused({"tail", "/dev/null"}, HasSubstr("neither a folder nor a file"));
  std::ofstream(Path("text.vpt")) << "no timeline";
  ExpectRefused({"tail", Path("text.vpt"), "-d", "1ms"},
                HasSubstr("text.vpt does not begin as a vcpulse timeline"));
  std::ofstream(Path("empty.vpt")).flush();  // it may become one
  EXPECT_EQ(RunProgram(Vcpulse({"tail", Path("empty.vpt"), "-d", "1ms"})).exit_code, 0);
  const std::string folder = folder_.root();
  ExpectRefused({"tail", folder, "--format", "csv"}, HasSubstr("--format: 'csv' is neither text"));
  ExpectRefused({"tail", folder, "-n", "x"}, HasSubstr("-n: 'x' is not a number"));
  ExpectRefused({"tail", folder, "-n", "1", "--from-start"}, HasSubstr("cannot be used together"));
  ExpectRefused({"tail", folder, "--duration", "1"}, HasSubstr("has no unit"));
  ExpectRefused({"tail", folder, "--cert", "x"}, HasSubstr("a folder needs none"));
  const std::string address = "unix:" + Path("none.sock");
  ExpectRefused({"tail", address, "-n", "1"}, HasSubstr("-n: a collector sends what comes"));
  ExpectRefused({"tail", address, "--from-start"}, HasSubstr("--from-start: a collector sends"));
  ExpectRefused({"tail", address}, HasSubstr(Path("none.sock")));
  ExpectRefused({"tail", "tcp:127.0.0.1:0"}, HasSubstr("nobody listens on port 0"));
  ExpectRefused({"tail", "tcp:nope"}, HasSubstr("tcp:nope"));
  ExpectRefused({"tail", "tls:127.0.0.1:1"}, HasSubstr("--cert is not given"));
}

}  // namespace
}  // namespace vcpulse::stream_tests
