// Server and client of the control socket, over real unix sockets in a temporary folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kvm/base/fd.h"
#include "monitor/control/client.h"
#include "monitor/control/listening_socket.h"
#include "monitor/control/request.h"
#include "monitor/control/server.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/monitor/control/control_peers.h"

namespace vcpulse::control {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(30);  // never reached

int64_t FakeNow_ns() { return 4711; }

class ControlSocket : public ::testing::Test {
 protected:
  ~ControlSocket() override {
    Stop();
    server_.reset();
    fs::remove_all(folder_);
  }

  void Listen(std::chrono::milliseconds patience = std::chrono::milliseconds(kLong_ms)) {
    auto server = Server::Listen(
        context_, {.path = path_, .now_ns = FakeNow_ns, .patience = patience},
        [this](const Request& request, int64_t received_mono_ns, const Server::Answer& answer) {
          seen_.push_back(request);
          stamps_.push_back(received_mono_ns);
          handler_(request, answer);
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { context_.run(); });
  }

  // After it, what the server's thread wrote may be read.
  void Stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::StatusOr<Answer> AskIt(const Request& request = {}) { return Ask(path_, request, kLong); }

  static std::string ErrorOf(const absl::StatusOr<Answer>& answer) {
    return answer.ok() ? "no error" : std::string(answer.status().message());
  }

  fs::path folder_ = fakes::MakeTemporaryFolder();
  std::string path_ = folder_ / "control";
  std::function<void(const Request&, const Server::Answer&)> handler_ =
      [](const Request&, const Server::Answer& answer) { answer({.mono_ns = 7}); };
  std::vector<Request> seen_;
  std::vector<int64_t> stamps_;
  boost::asio::io_context context_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(ControlSocket, ARequestIsStampedHandledAndAnswered) {
  Listen();
  const Request mark{.verb = Verb::kMark, .name = "größe 1"};
  const auto answer = AskIt(mark);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->line, "{\"ok\":true,\"mono_ns\":7}");
  EXPECT_EQ(answer->response.mono_ns, 7);
  Stop();
  EXPECT_THAT(seen_, ElementsAre(mark));
  EXPECT_THAT(stamps_, ElementsAre(4711));
}

TEST_F(ControlSocket, ARefusalIsAnAnswer) {
  handler_ = [](const Request&, const Server::Answer& answer) {
    answer({.error = absl::FailedPreconditionError("the recording is paused already")});
  };
  Listen();
  const auto answer = AskIt({.verb = Verb::kPause});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->response.error,
            absl::FailedPreconditionError("the recording is paused already"));
}

TEST_F(ControlSocket, OnlyItsUserMayUseTheSocketWhateverTheUmask) {
  const mode_t before = umask(0);
  Listen();
  umask(before);
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

// Whatever the umask is; and the process keeps its own.
TEST_F(ControlSocket, ASocketForEveryoneHasItsModeFromTheStart) {
  const mode_t before = umask(0077);
  const auto socket = ListeningSocket::Open(path_, ListeningSocket::Access::kEveryone);
  EXPECT_EQ(umask(before), 0077U);
  ASSERT_TRUE(socket.ok()) << socket.status();
  struct stat info{};
  ASSERT_EQ(lstat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0666U);
}

TEST_F(ControlSocket, AnotherUserIsTurnedAwayEvenWhereTheModeLetsHimIn) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become another user";
  Listen();
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(path_, fs::perms::all);
  std::promise<std::string> said;
  // Credentials are those of the thread: glibc's seteuid would change all of them.
  std::thread([&] {
    ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    const auto answer = AskIt();
    said.set_value(answer.ok() ? std::string(answer->response.error.message()) : ErrorOf(answer));
  }).join();
  EXPECT_EQ(said.get_future().get(), "not permitted: this is another user's recording");
  Stop();
  EXPECT_TRUE(seen_.empty());
}

TEST_F(ControlSocket, WithoutTheRightToConnectTheClientSaysSo) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become another user";
  Listen();
  fs::permissions(folder_, fs::perms::all);
  std::promise<absl::Status> said;
  std::thread([&] {
    ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    said.set_value(AskIt().status());
  }).join();
  const absl::Status status = said.get_future().get();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + "': not permitted"));
}

TEST_F(ControlSocket, ALeftOverSocketIsReplaced) {
  Bound(path_, 0);
  ASSERT_TRUE(fs::is_socket(path_));
  EXPECT_THAT(ErrorOf(AskIt()), HasSubstr("the recording that listened here has ended; start it"));
  Listen();
  EXPECT_TRUE(AskIt().ok());
}

TEST_F(ControlSocket, ALiveSocketIsNotTakenOver) {
  Listen();
  boost::asio::io_context context;
  const auto second =
      Server::Listen(context, {.path = path_, .now_ns = FakeNow_ns},
                     [](const Request&, int64_t, const Server::Answer&) { FAIL(); });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(
      second.status().message(),
      "socket '" + path_ + "': somebody listens there already; name another path, or end that one");
  EXPECT_TRUE(AskIt().ok()) << "and the first goes on";
}

TEST_F(ControlSocket, SomethingElseIsNotReplaced) {
  std::ofstream(path_) << "mine";
  const auto server = Server::Listen(
      context_, {.path = path_}, [](const Request&, int64_t, const Server::Answer&) { FAIL(); });
  EXPECT_EQ(server.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("something else lies there"));
  EXPECT_EQ(fs::file_size(path_), 4u);
  EXPECT_THAT(ErrorOf(AskIt()), HasSubstr("what lies here is not a socket"));
}

TEST_F(ControlSocket, APathThatCannotBeIsSaidInWords) {
  path_ = folder_ / std::string(120, 'x');
  const auto server = Server::Listen(
      context_, {.path = path_}, [](const Request&, int64_t, const Server::Answer&) { FAIL(); });
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("more than the 107"));
  EXPECT_EQ(AskIt().status().code(), absl::StatusCode::kInvalidArgument);
  path_ = folder_ / "none" / "control";
  const auto no_folder = Server::Listen(
      context_, {.path = path_}, [](const Request&, int64_t, const Server::Answer&) { FAIL(); });
  EXPECT_EQ(no_folder.status().code(), absl::StatusCode::kNotFound);
  path_ = "";
  EXPECT_EQ(AskIt().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlSocket, TheSocketGoesWithItsServer) {
  Listen();
  Stop();
  server_.reset();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ControlSocket, AnotherSocketAtItsPathStays) {
  Listen();
  Stop();
  fs::remove(path_);
  const Fd other = Bound(path_, 1);
  server_.reset();
  EXPECT_TRUE(fs::is_socket(path_));
}

TEST_F(ControlSocket, TwoClientsAreServedSideBySide) {
  Listen();
  RawClient first(path_);
  RawClient second(path_);
  ASSERT_TRUE(first.Send("mark fi"));
  ASSERT_TRUE(second.Send("mark second\n"));
  EXPECT_EQ(second.Line(), "{\"ok\":true,\"mono_ns\":7}");
  ASSERT_TRUE(first.Send("rst\n"));
  EXPECT_EQ(first.Line(), "{\"ok\":true,\"mono_ns\":7}");
  ASSERT_TRUE(second.Send("status\n"));
  EXPECT_TRUE(second.Line().has_value());
  Stop();
  EXPECT_THAT(seen_, ElementsAre(Request{.verb = Verb::kMark, .name = "second"},
                                 Request{.verb = Verb::kMark, .name = "first"},
                                 Request{.verb = Verb::kStatus}));
}

TEST_F(ControlSocket, RequestsInOnePieceAreAnsweredInTheirOrder) {
  handler_ = [](const Request& request, const Server::Answer& answer) {
    answer({.error = absl::FailedPreconditionError(request.name)});
  };
  Listen();
  RawClient client(path_);
  ASSERT_TRUE(client.Send("mark a\nmark b\r\nmark c\n"));
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(client.Line(), std::string("{\"ok\":false,\"error\":\"") + name + "\"}");
  }
}

TEST_F(ControlSocket, HalfALineIsNoRequest) {
  Listen();
  RawClient client(path_);
  ASSERT_TRUE(client.Send("stop"));
  client.Close();
  EXPECT_TRUE(AskIt().ok());
  Stop();
  EXPECT_THAT(seen_, ElementsAre(Request{.verb = Verb::kStatus}));
}

TEST_F(ControlSocket, GarbageIsAnsweredWithItsPlace) {
  Listen();
  RawClient client(path_);
  ASSERT_TRUE(client.Send(std::string("\0\xff\n", 3)));
  EXPECT_THAT(client.Line().value_or(""),
              HasSubstr(R"({"ok":false,"error":"column 1: '\\x00\\xff' is not a request)"));
  ASSERT_TRUE(client.Send("stop\n")) << "the connection goes on";
  EXPECT_EQ(client.Line(), "{\"ok\":true,\"mono_ns\":7}");
}

TEST_F(ControlSocket, ALineTooLongEndsItsConnectionAlone) {
  Listen();
  RawClient other(path_);
  RawClient client(path_);
  ASSERT_TRUE(client.Send("mark " + std::string(kLongestLine_bytes, 'x')));
  EXPECT_EQ(client.Line(),
            "{\"ok\":false,\"error\":\"column 4097: a request has at most 4096 bytes\"}");
  EXPECT_EQ(client.Line(), std::nullopt);
  ASSERT_TRUE(other.Send("status\n"));
  EXPECT_TRUE(other.Line().has_value());
}

TEST_F(ControlSocket, TooManyConnectionsAreTurnedAway) {
  Listen();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t i = 0; i < Server::kMostConnections; ++i) {
    clients.push_back(std::make_unique<RawClient>(path_));
    ASSERT_TRUE(clients.back()->Send("status\n"));
    ASSERT_TRUE(clients.back()->Line().has_value());
  }
  const auto turned_away = AskIt();
  ASSERT_TRUE(turned_away.ok()) << turned_away.status();
  EXPECT_EQ(turned_away->response.error.message(), "too many connections: at most 16 at once");
  clients.pop_back();
  // The server notices a closed connection when it next runs.
  absl::StatusOr<Answer> answer = turned_away;
  for (int i = 0; i < 10'000 && answer.ok() && !answer->response.error.ok(); ++i) answer = AskIt();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->response.error.ok()) << answer->response.error;
}

TEST_F(ControlSocket, ASilentClientLosesItsConnection) {
  Listen(std::chrono::milliseconds(50));
  RawClient silent(path_);
  EXPECT_EQ(silent.Line(), std::nullopt);
  RawClient trickling(path_);
  bool connected = true;
  // A byte now and then is no request.
  for (int i = 0; i < 3000 && connected; ++i) {
    connected = trickling.Send("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(connected);
}

// The recording ends, and with it the context; then the answer goes.
TEST_F(ControlSocket, AnAnswerMayComeLateAndWithoutTheContext) {
  Server::Answer kept;
  std::promise<void> handled;
  handler_ = [&](const Request&, const Server::Answer& answer) {
    kept = answer;
    handled.set_value();
  };
  Listen(std::chrono::milliseconds(500));
  RawClient client(path_);
  ASSERT_TRUE(client.Send("stop\nstatus\n"));
  handled.get_future().wait();
  // Its owner's time is not the client's.
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  Stop();
  kept({.mono_ns = 9});
  kept({.mono_ns = 10});
  server_.reset();
  EXPECT_EQ(client.Line(), "{\"ok\":true,\"mono_ns\":9}");
  EXPECT_EQ(client.Line(), std::nullopt);
  kept({.mono_ns = 11});  // nobody is there
}

TEST_F(ControlSocket, ALongAnswerWaitsForItsReader) {
  Response response{.status = RecordingStatus{}};
  response.status->vms.assign(20'000, {.name = "a virtual machine", .pid = 1, .vcpus = 1});
  handler_ = [&](const Request&, const Server::Answer& answer) { answer(response); };
  Listen();
  RawClient client(path_);
  ASSERT_TRUE(client.Send("status\nstatus\n"));
  EXPECT_TRUE(AskIt().ok()) << "others are served meanwhile";
  for (int i = 0; i < 2; ++i) {
    const auto again = ParseResponse(client.Line().value_or(""));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_GT(again->status->vms.size(), 10'000u);
  }
}

TEST_F(ControlSocket, WithoutARecordingTheClientSaysHowToStartOne) {
  const auto answer = AskIt();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorOf(answer), "control socket '" + path_ +
                                 "': no recording listens here; start it with `vcpulse record "
                                 "--control '" +
                                 path_ + "'`");
}

TEST_F(ControlSocket, ASilentServerIsNotWaitedForForEver) {
  const Fd silent = Bound(path_, 5);
  const auto answer = Ask(path_, {}, absl::Milliseconds(100));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ErrorOf(answer), HasSubstr("no answer within 100ms"));
}

TEST_F(ControlSocket, AServerThatTakesNobodyInIsNotWaitedForForEver) {
  const Fd silent = Bound(path_, 0);
  const RawClient first(path_);  // the backlog is full now
  const auto answer = Ask(path_, {}, absl::Milliseconds(100));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
}

// What one server says to whoever comes, then closes.
absl::StatusOr<Answer> AskSomebodyWhoSays(const std::string& path, std::string_view text) {
  const Fd listener = Bound(path, 1);
  std::thread server([&] {
    const Fd client(accept(listener.get(), nullptr, nullptr));
    char request[64];
    EXPECT_GT(recv(client.get(), request, sizeof(request), 0), 0);
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t size = send(client.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) break;
      sent += static_cast<size_t>(size);
    }
  });
  auto answer = Ask(path, {}, kLong);
  server.join();
  return answer;
}

TEST_F(ControlSocket, AnAnswerThatMakesNoSenseIsAnError) {
  const auto answer = AskSomebodyWhoSays(path_, "HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(ErrorOf(answer), HasSubstr("the answer makes no sense: it is not JSON"));
}

TEST_F(ControlSocket, AnEndlessAnswerIsAnError) {
  const auto answer = AskSomebodyWhoSays(path_, std::string(3 * kLongestAnswer_bytes, ' '));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ControlSocket, ARecordingThatEndsBeforeItAnswersIsAnError) {
  const auto answer = AskSomebodyWhoSays(path_, "{\"ok\":true}");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ErrorOf(answer), HasSubstr("ended before it answered"));
  EXPECT_FALSE(NobodyWasAsked(answer.status())) << "it may have been done";
}

TEST_F(ControlSocket, WithoutAnybodyThereNobodyWasAsked) {
  const Request request{.verb = Verb::kStatus};
  EXPECT_TRUE(NobodyWasAsked(Ask(path_, request, kLong).status()));
  {
    const Fd left_over = Bound(path_, 0);
  }
  EXPECT_TRUE(NobodyWasAsked(Ask(path_, request, kLong).status()));
}

}  // namespace
}  // namespace vcpulse::control
