// Following a collector that goes away, comes back, or will not have its follower any more.
#include "monitor/stream/net/follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kvm/base/fd.h"
#include "monitor/stream/net/backoff.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/stream/protocol/hello.h"
#include "tests/fakes/certificates.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StreamFollower : public StreamTest {
 protected:
  FollowOptions Options(const Address& address) {
    return {.address = address,
            .identity = {.agent_id = "follower"},
            .chunk =
                [this](const v1::StreamInfo&, std::span<const uint8_t> chunk) {
                  followed.emplace_back(chunk.begin(), chunk.end());
                  return absl::OkStatus();
                },
            .welcomed = [this] { ++welcomes; },
            .say = follower_said.Sink(),
            .first_backoff = milliseconds(2),
            .longest_backoff = milliseconds(20)};
  }
  // Follows until all `steps` are done: each is tried, again and again, once the one before is.
  absl::Status FollowThrough(const FollowOptions& options,
                             const std::vector<std::function<bool()>>& steps) {
    size_t done = 0;
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    absl::Status status = Follow(options, [&] {
      while (done < steps.size() && steps[done]()) ++done;
      return done == steps.size() || std::chrono::steady_clock::now() > end;
    });
    EXPECT_EQ(done, steps.size()) << follower_said.text() << said.text();
    return status;
  }
  // Never, within the time of a test.
  static std::function<bool()> Never() {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    return [end] { return std::chrono::steady_clock::now() > end; };
  }
  bool IsFollowed() const { return collector->stats().followers == 1; }

  std::vector<Chunk> followed;
  int welcomes = 0;
  Said follower_said;
};

TEST_F(StreamFollower, IsSentWhatIsWrittenWhenItsAgentHasGone) {
  auto options = CollectorOptions();
  options.files = &files;
  StartCollector(std::move(options));
  auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 2, 1);
  const absl::Status status =
      FollowThrough(Options(Unix("collector")),
                    {[&] { return IsFollowed(); }, [&] { return agent->Offer(chunks[0]); },
                     [&] { return followed.size() == 1; },
                     [&] {
                       files.hangs = true;
                       return agent->Offer(chunks[1]);
                     },
                     [&] { return collector->stats().pending_bytes > 0; },
                     [&] {
                       agent.reset();
                       return true;
                     },
                     [&] { return collector->stats().connections == 1; },
                     [&] {
                       files.hangs = false;
                       return true;
                     },
                     [&] { return followed.size() == 2; }});
  files.hangs = false;
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(followed, chunks);
  ASSERT_EQ(collector->stats().agents.size(), 1U);
  EXPECT_EQ(collector->stats().agents[0].chunks, 2U);
}

TEST_F(StreamFollower, GoesOnWhereTheCollectorComesBack) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 6, 1);
  const std::vector<Chunk> before(chunks.begin(), chunks.begin() + 3);
  const absl::Status status = FollowThrough(Options(Unix("collector")),
                                            {[&] { return IsFollowed(); },
                                             [&] {
                                               OfferAll(*agent, before);
                                               return true;
                                             },
                                             [&] { return followed.size() == 3; },
                                             [&] {
                                               collector.reset();
                                               return true;
                                             },
                                             [&] { return follower_said.Has("was lost"); },
                                             [&] {
                                               StartCollector(CollectorOptions());
                                               return true;
                                             },
                                             [&] { return IsFollowed(); },
                                             [&] {
                                               OfferAll(*agent, {chunks.begin() + 3, chunks.end()});
                                               return true;
                                             },
                                             [&] { return followed.size() == 6; }});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(followed, chunks);
  EXPECT_EQ(welcomes, 2);
  const std::string address = ToText(Unix("collector"));
  EXPECT_EQ(follower_said.text(),
            "the collector was lost: " + address +
                ": the collector says: the collector ends; it may come back; trying again\n" +
                address + " is there again; what came meanwhile is not shown\n");
}

// What waited for a follower that reads late, too: far more than the sockets take.
TEST_F(StreamFollower, IsSentAllThatWaitedWhenTheCollectorEnds) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 400, 1, 20'000);
  std::thread ending;
  FollowOptions options = Options(Unix("collector"));
  options.chunk = [&](const v1::StreamInfo&, std::span<const uint8_t> chunk) {
    followed.emplace_back(chunk.begin(), chunk.end());
    if (followed.size() > 1) return absl::OkStatus();
    EXPECT_TRUE(Eventually([&] { return agent->stats().acknowledged_chunks == chunks.size(); }));
    ending = std::thread([this] { collector->Stop(seconds(20)); });
    EXPECT_TRUE(Eventually([&] { return agent_said.Has("the collector ends"); }));
    return absl::OkStatus();
  };
  const absl::Status status =
      FollowThrough(options, {[&] { return IsFollowed(); },
                              [&] {
                                OfferAll(*agent, chunks);
                                return true;
                              },
                              [&] { return follower_said.Has("was lost"); }});
  if (ending.joinable()) ending.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(followed.size(), chunks.size());
  EXPECT_TRUE(followed == chunks);
  EXPECT_TRUE(follower_said.Has("the collector ends; it may come back")) << follower_said.text();
}

// However often it is tried: nobody is there, and that was said.
TEST_F(StreamFollower, MayBeStoppedWhileTheCollectorIsAway) {
  StartCollector(CollectorOptions());
  int asked = 0;
  EXPECT_TRUE(FollowThrough(Options(Unix("collector")), {[&] { return IsFollowed(); },
                                                         [&] {
                                                           collector.reset();
                                                           return true;
                                                         },
                                                         [&] { return ++asked > 10; }})
                  .ok());
  EXPECT_EQ(welcomes, 1);
  const std::string text = follower_said.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

// Also between two attempts, however far apart they are.
TEST_F(StreamFollower, MayBeStoppedBeforeItTriesAgain) {
  StartCollector(CollectorOptions());
  FollowOptions options = Options(Unix("collector"));
  options.first_backoff = std::chrono::hours(1);
  EXPECT_TRUE(FollowThrough(options, {[&] { return IsFollowed(); },
                                      [&] {
                                        collector.reset();
                                        return true;
                                      },
                                      [&] { return follower_said.Has("was lost"); }})
                  .ok());
}

TEST_F(StreamFollower, TheFirstConnectionMustSucceed) {
  const absl::Status status = Follow(Options(Unix("collector")), Never());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(ToText(Unix("collector"))));
  EXPECT_EQ(follower_said.text(), "");
}

TEST_F(StreamFollower, AnErrorOfItsOwnerEndsIt) {
  StartCollector(CollectorOptions());
  const auto agent = StartAgent(AgentOptions(Unix("collector")));
  FollowOptions options = Options(Unix("collector"));
  options.chunk = [](const auto&, auto) { return absl::CancelledError("enough"); };
  bool sent = false;
  const std::function<bool()> never = Never();
  const absl::Status status = Follow(options, [&] {
    if (!sent && IsFollowed()) {
      sent = true;
      OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 2, 1));
    }
    return never();
  });
  EXPECT_EQ(status, absl::CancelledError("enough"));
}

class StreamFollowerTls : public StreamFollower {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fakes::MakeAuthority(folder.string(), "ca"));
    ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "server", "IP:127.0.0.1"));
    ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "follower", "DNS:follower"));
  }
  CredentialFiles Credentials(const std::string& name) const {
    return {.certificate = Path(name + ".pem"),
            .key = Path(name + ".key"),
            .authorities = Path("ca.pem")};
  }
  // Where the one before listened.
  void StartTls(const std::vector<std::string>& followers) {
    auto options = CollectorOptions();
    options.listen = {Loopback(Address::Kind::kTls, port)};
    options.credentials = Credentials("server");
    options.allowed_followers = followers;
    StartCollector(std::move(options));
    port = collector->addresses().front().port;
  }

  uint16_t port = 0;
};

TEST_F(StreamFollowerTls, WhereItMayFollowNoMoreItEnds) {
  StartTls({"follower"});
  FollowOptions options = Options(collector->addresses().front());
  options.credentials = Credentials("follower");
  options.agent_id = "other";
  bool is_restarted = false;
  const std::function<bool()> never = Never();
  const absl::Status status = Follow(options, [&] {
    if (!is_restarted && IsFollowed()) {
      is_restarted = true;
      collector.reset();
      StartTls({});
    }
    return never();
  });
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("tls:127.0.0.1:"), HasSubstr("agent ids that it may use itself")));
  EXPECT_EQ(welcomes, 1);
}

// A certificate can be mended: it is said, once, and tried again.
TEST_F(StreamFollowerTls, AWrongCertificateMayBecomeARightOne) {
  StartTls({"follower"});
  FollowOptions options = Options(collector->addresses().front());
  options.credentials = Credentials("follower");
  int asked = 0;
  EXPECT_TRUE(
      FollowThrough(
          options,
          {[&] { return IsFollowed(); },
           [&] {
             collector.reset();
             return fakes::MakeCertificate(folder.string(), "ca", "server", "DNS:elsewhere");
           },
           [&] {
             StartTls({"follower"});
             return true;
           },
           [&] { return follower_said.Has("it does not name 127.0.0.1"); },
           [&] { return ++asked > 10; },
           [&] { return fakes::MakeCertificate(folder.string(), "ca", "server", "IP:127.0.0.1"); },
           [&] { return collector->ReloadCredentials().ok(); }, [&] { return IsFollowed(); }})
          .ok());
  const std::string text = follower_said.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_TRUE(follower_said.Has("cannot follow tls:127.0.0.1:")) << text;
  EXPECT_TRUE(follower_said.Has(" is there again")) << text;
}

// Says one thing to each that connects, and closes.
class HandMadeCollector {
 public:
  HandMadeCollector(const std::string& path, std::vector<std::vector<uint8_t>> answers)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd_.get(), 5), 0);
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const auto& answer : answers) {
        const Fd peer(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        static_cast<void>(send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
        shutdown(peer.get(), SHUT_WR);
        char rest[4096];
        while (recv(peer.get(), rest, sizeof(rest), 0) > 0) {
        }
      }
    });
  }
  ~HandMadeCollector() {
    shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  HandMadeCollector(const HandMadeCollector&) = delete;
  HandMadeCollector& operator=(const HandMadeCollector&) = delete;

 private:
  Fd fd_;
  std::thread thread_;
};

std::vector<uint8_t> WelcomeOf(uint32_t major) {
  v1::Welcome welcome;
  welcome.set_major(major);
  welcome.set_credit_bytes(1 << 20);
  welcome.set_max_frame_bytes(1 << 20);
  std::vector<uint8_t> frame;
  AppendFrame(FrameType::kWelcome, welcome, frame);
  return frame;
}

std::vector<uint8_t> ErrorOf(v1::Error::Code code) {
  v1::Error error;
  error.set_code(code);
  error.set_reason("no");
  std::vector<uint8_t> frame;
  AppendFrame(FrameType::kError, error, frame);
  return frame;
}

TEST_F(StreamFollower, AnotherVersionEndsIt) {
  const HandMadeCollector first(Path("a"), {WelcomeOf(kMajor), WelcomeOf(kMajor + 1)});
  const absl::Status status = Follow(Options(Unix("a")), Never());
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the collector speaks version 2"));
  const HandMadeCollector other(Path("b"), {WelcomeOf(kMajor), ErrorOf(v1::Error::CODE_VERSION)});
  const absl::Status refused = Follow(Options(Unix("b")), Never());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the collector says: no"));
  EXPECT_EQ(welcomes, 2);
}

// All but what somebody has to mend first.
TEST_F(StreamFollower, OtherRefusalsAreTriedAgain) {
  std::vector<std::vector<uint8_t>> answers;
  for (const auto code : {v1::Error::CODE_BUSY, v1::Error::CODE_STORAGE, v1::Error::CODE_TIMEOUT,
                          v1::Error::CODE_SHUTDOWN, v1::Error::CODE_MALFORMED}) {
    answers.push_back(WelcomeOf(kMajor));
    answers.push_back(ErrorOf(code));
  }
  answers.push_back(ErrorOf(v1::Error::CODE_NOT_PERMITTED));
  const HandMadeCollector unwilling(Path("a"), answers);
  const absl::Status status = Follow(Options(Unix("a")), Never());
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_EQ(welcomes, 5);
}

TEST(Backoff, DoublesToItsBoundAndIsDrawn) {
  Backoff backoff(milliseconds(100), milliseconds(350));
  for (int round = 0; round < 100; ++round) {
    for (const int64_t span : {100, 200, 350, 350}) {
      const int64_t wait = backoff.Next().count();
      EXPECT_GE(wait, span / 2);
      EXPECT_LE(wait, span);
    }
    backoff.Reset();
  }
}

}  // namespace
}  // namespace vcpulse::stream
