#include "monitor/stream/net/collector.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/signals.h"
#include "monitor/stream/net/collector_loop.h"
#include "monitor/stream/net/committer.h"
#include "monitor/stream/net/memory.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

absl::Status CheckCollectorOptions(const Collector::Options& options) {
  if (options.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  for (const Address& address : options.listen) {
    absl::Status status = CheckSecure(address, options.allow_insecure);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool AnyTls(const std::vector<Address>& addresses) {
  return std::ranges::any_of(
      addresses, [](const Address& address) { return address.kind == Address::Kind::kTls; });
}

// Directories, listeners, HTTP, and files that are looked at.
constexpr uint64_t kOtherDescriptors = 128;
constexpr size_t kMostIdle = 512;

size_t MostIdle(const Collector::Options& options) {
  return options.descriptors == 0 ? kMostIdle
                                  : std::min<size_t>(kMostIdle, options.descriptors / 8);
}

// As many connections as memory and descriptors allow; says where these are fewer than wanted.
Collector::Options Clamped(Collector::Options options) {
  const auto clamp = [&options](uint64_t most, const std::string& why) {
    if (options.max_connections <= most) return;
    options.max_connections = most;
    options.say(absl::StrCat("at most ", most, " connections: ", why));
  };
  clamp(MemoryShares(options.memory_bytes).most_connections(),
        "there is no memory for more (--memory)");
  if (options.descriptors > 0) {
    const uint64_t others = kOtherDescriptors + MostIdle(options);
    const uint64_t left = options.descriptors - std::min(options.descriptors, others);
    clamp(std::max<uint64_t>(left / 2, 1),
          absl::StrCat("the process may have ", options.descriptors,
                       " open files (ulimit -n, LimitNOFILE=)"));
  }
  return options;
}

class RunningCollector final : public Collector {
 public:
  explicit RunningCollector(Options options)
      : options_(Clamped(std::move(options))),
        work_(context_.get_executor()),
        loop_(context_, options_) {}

  absl::Status Begin() {
    if (options_.files == nullptr) options_.files = &KernelFiles();
    absl::Status status = options_.files->MakeDirectories(options_.directory);
    if (!status.ok()) return status;
    auto lock = options_.files->Lock(options_.directory);
    if (absl::IsFailedPrecondition(lock.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.directory,
                       " is in use by another collector: end that one, or choose another --dir"));
    }
    if (!lock.ok()) return lock.status();
    lock_ = *std::move(lock);
    if (AnyTls(options_.listen)) {
      if (status = ReloadCredentials(); !status.ok()) return status;
    }
    if (status = loop_.Listen(); !status.ok()) return status;
    addresses_ = loop_.addresses();
    committer_ = std::make_unique<Committer>(
        Committer::Options{.files = options_.files,
                           .directory = options_.directory,
                           .store = options_.store,
                           .retention = options_.retention,
                           .sync = options_.sync,
                           .most_idle = MostIdle(options_),
                           .realtime = options_.realtime,
                           .report = [this](auto report) { loop_.TakeReport(std::move(report)); },
                           .say = options_.say});
    loop_.set_committer(committer_.get());
    loop_.StartTicking();
    const BlockedSignals blocked;  // they are for other threads
    thread_ = std::thread([this] { context_.run(); });
    pthread_setname_np(thread_.native_handle(), "vcpulse-net");
    return absl::OkStatus();
  }

  ~RunningCollector() override { Stop(std::chrono::seconds(5)); }
  RunningCollector(const RunningCollector&) = delete;
  RunningCollector& operator=(const RunningCollector&) = delete;

  std::vector<Address> addresses() const override { return addresses_; }

  bool Stop(std::chrono::milliseconds patience) override {
    if (!thread_.joinable()) return true;
    const auto end = std::chrono::steady_clock::now() + patience;
    Do([this] { loop_.StopReading(); });
    const bool drained = committer_->Drain(patience);
    if (!drained) committer_->Abandon();
    // The committer's last report was posted before: its acknowledgements go out first.
    Do([this] { loop_.Shutdown(); });
    while (std::chrono::steady_clock::now() < end) {
      bool any_left = false;
      Do([&] { any_left = loop_.AnyAlive(); });
      if (!any_left) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    Do([this] { loop_.CloseAll(); });
    work_.reset();
    context_.stop();
    thread_.join();
    if (drained) {  // else it waits for the disk
      loop_.set_committer(nullptr);
      committer_.reset();
    }
    return drained;
  }

  absl::Status ReloadCredentials() override {
    auto tls = NewTlsContext(options_.credentials, TlsRole::kServer);
    if (!tls.ok()) return tls.status();
    loop_.SetTls(*std::move(tls));
    return absl::OkStatus();
  }

  Stats stats() const override {
    Stats stats;
    loop_.FillStats(stats);
    return stats;
  }

 private:
  // On the network thread; waits for it.
  void Do(const std::function<void()>& action) {
    std::promise<void> done;
    asio::post(context_, [&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }

  Options options_;
  std::unique_ptr<DirectoryLock> lock_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  CollectorLoop loop_;
  std::unique_ptr<Committer> committer_;
  std::vector<Address> addresses_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collector>> Collector::Start(Options options) {
  if (absl::Status status = CheckCollectorOptions(options); !status.ok()) return status;
  if (!options.say) options.say = [](const std::string&) {};
  auto collector = std::make_unique<RunningCollector>(std::move(options));
  if (absl::Status status = collector->Begin(); !status.ok()) return status;
  return collector;
}

}  // namespace vcpulse::stream
