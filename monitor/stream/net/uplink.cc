#include "monitor/stream/net/uplink.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "monitor/core/check.h"
#include "monitor/stream/net/uplink_loop.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;
using Offered = UplinkWay::Offered;

absl::Status CheckUplinkOptions(const Uplink::Options& options) {
  if (options.make_way) return absl::OkStatus();  // it has its own
  if (options.addresses.empty()) return absl::InvalidArgumentError("no collector is named");
  bool any_tls = false;
  for (const Address& address : options.addresses) {
    absl::Status status = CheckSecure(address, options.allow_insecure);
    if (!status.ok()) return status;
    any_tls = any_tls || address.kind == Address::Kind::kTls;
  }
  return any_tls ? CheckCredentials(options.credentials) : absl::OkStatus();
}

class RunningUplink final : public Uplink {
 public:
  RunningUplink(Options options, std::unique_ptr<Spool> spool)
      : options_(std::move(options)),
        work_(context_.get_executor()),
        loop_(MakeWay(std::move(spool))) {
    loop_->Fill(stats_);
    asio::post(context_, [this] { loop_->Begin(); });
    const BlockedSignals blocked;  // they are for other threads
    thread_ = std::thread([this] { context_.run(); });
    pthread_setname_np(thread_.native_handle(), "vcpulse-uplink");
  }

  ~RunningUplink() override {
    asio::post(context_, [this] {
      loop_->End();
      context_.stop();
    });
    thread_.join();
  }
  RunningUplink(const RunningUplink&) = delete;
  RunningUplink& operator=(const RunningUplink&) = delete;

  bool Offer(std::span<const uint8_t> chunk) override {
    const auto header = timeline::DecodeChunkHeader(chunk);
    VCPULSE_CHECK(header.ok(), "no chunk");
    if (header->first_sequence > header->last_sequence) return true;  // context alone
    bool has_room = true;
    {
      const std::lock_guard lock(mutex_);
      has_room = queue_bytes_ + chunk.size() <= options_.max_queue_bytes;
      if (has_room) {
        queue_bytes_ += chunk.size();
      } else {
        DropWithLock(*header);
      }
    }
    if (!has_room) {
      Wake();  // nothing may follow that would
      return false;
    }
    Offered offered{.stream = header->stream_id, .header = *header};
    offered.chunk.assign(chunk.begin(), chunk.end());
    Put(std::move(offered));
    return true;
  }

  void OfferLost(const timeline::StreamId& stream, const v1::LostRecords& lost) override {
    {
      const std::lock_guard lock(mutex_);
      PutLost(stream, lost);
    }
    Wake();
  }

  absl::Status AwaitConnected(std::chrono::milliseconds patience) override {
    asio::post(context_, [this] { loop_->WantConnection(); });
    std::unique_lock lock(mutex_);
    const auto is_connected = [this] { return stats_.connects > 0; };
    changed_.wait_for(lock, patience, [&] { return is_connected() || !stats_.obstacle.empty(); });
    if (is_connected()) return absl::OkStatus();
    if (!stats_.obstacle.empty()) return absl::PermissionDeniedError(stats_.obstacle);
    return absl::DeadlineExceededError(stats_.last_error.empty() ? "no collector answered in time"
                                                                 : stats_.last_error);
  }

  absl::Status AwaitRoom(uint64_t bytes, std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    const auto has_room = [&] {
      return queue_bytes_ + stats_.spool_bytes + stats_.spool_memory_bytes < bytes;
    };
    const bool is_room = AwaitOrRefusal(lock, patience, has_room);
    if (!stats_.refusal.empty()) return Refused();  // room is of no use then
    return is_room ? absl::OkStatus() : Unfinished();
  }

  absl::Status Finish(std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    const auto is_done = [this] {
      return queue_bytes_ == 0 && queue_.empty() && taking_ == 0 && stats_.waiting_chunks == 0 &&
             stats_.untold_records == 0;
    };
    if (AwaitOrRefusal(lock, patience, is_done)) return absl::OkStatus();
    return Unfinished();
  }

  void ReloadCredentials() override {
    asio::post(context_, [this] { loop_->Reconnect(); });
  }

  Stats stats() const override {
    const std::lock_guard lock(mutex_);
    Stats stats = stats_;
    stats.queue_bytes = queue_bytes_;
    stats.lost_chunks += dropped_chunks_;
    stats.lost_records += dropped_records_;
    stats.untold_records += queued_lost_records_;
    return stats;
  }

 private:
  std::shared_ptr<UplinkWay> MakeWay(std::unique_ptr<Spool> spool) {
    auto changed = [this] { TakeStats(); };
    if (options_.make_way) return options_.make_way(context_, options_, std::move(spool), changed);
    return std::make_shared<UplinkLoop>(context_, options_, std::move(spool), changed);
  }

  void DropWithLock(const timeline::ChunkHeader& header) {
    ++dropped_chunks_;
    dropped_records_ += header.last_sequence - header.first_sequence + 1;
    PutLost(header.stream_id, timeline::LostChunk(header, v1::LostRecords::REASON_AGENT_BUSY));
  }

  // With the mutex held. What goes on where the last one ended is made one with it, so that these
  // take no more room however long the thread is busy.
  void PutLost(const timeline::StreamId& stream, const v1::LostRecords& lost) {
    queued_lost_records_ += lost.last_sequence() - lost.first_sequence() + 1;
    if (!queue_.empty() && !queue_.back().header && queue_.back().stream == stream &&
        queue_.back().lost.reason() == lost.reason() &&
        queue_.back().lost.last_sequence() + 1 == lost.first_sequence()) {
      queue_.back().lost.set_last_sequence(lost.last_sequence());
      queue_.back().lost.set_last_mono_ns(lost.last_mono_ns());
      return;
    }
    Offered offered{.stream = stream};
    offered.lost = lost;
    queue_.push_back(std::move(offered));
  }

  void Put(Offered offered) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(offered));
    }
    Wake();
  }

  void Wake() {
    if (wakes_.exchange(true)) return;  // it has not looked yet
    asio::post(context_, [this] { TakeQueue(); });
  }

  void TakeQueue() {
    wakes_ = false;
    std::deque<Offered> offered;
    uint64_t lost_records = 0;
    {
      const std::lock_guard lock(mutex_);
      offered.swap(queue_);
      lost_records = queued_lost_records_;
      ++taking_;
    }
    size_t bytes = 0;
    for (const Offered& one : offered) bytes += one.chunk.size();
    loop_->Take(offered);
    const std::lock_guard lock(mutex_);
    queue_bytes_ -= bytes;
    queued_lost_records_ -= lost_records;  // the spool counts them now
    --taking_;
    changed_.notify_all();
  }

  void TakeStats() {
    Stats stats;
    loop_->Fill(stats);
    const std::lock_guard lock(mutex_);
    stats_ = stats;
    changed_.notify_all();
  }

  // With the mutex held, which `lock` has. Whether `is_so`, at last.
  template <typename IsSo>
  bool AwaitOrRefusal(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience,
                      const IsSo& is_so) {
    changed_.wait_for(lock, patience, [&] { return is_so() || !stats_.refusal.empty(); });
    return is_so();
  }

  absl::Status Refused() const { return absl::PermissionDeniedError(stats_.refusal); }

  // With the mutex held.
  absl::Status Unfinished() const {
    if (!stats_.refusal.empty()) return Refused();
    const uint64_t unreported = stats_.untold_records + queued_lost_records_;
    const uint64_t bytes = stats_.spool_bytes + stats_.spool_memory_bytes + queue_bytes_;
    std::vector<std::string> parts;
    if (stats_.waiting_chunks > 0 || unreported == 0) {
      parts.push_back(
          absl::StrCat(Plural(stats_.waiting_chunks, "chunk"), " (", Plural(bytes, "byte"), ")"));
    }
    if (unreported > 0) parts.push_back(absl::StrCat("the loss of ", Plural(unreported, "record")));
    return absl::DeadlineExceededError(absl::StrCat(
        "not acknowledged: ", absl::StrJoin(parts, " and "),
        stats_.last_error.empty() ? std::string() : absl::StrCat("; ", stats_.last_error)));
  }

  Options options_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Offered> queue_;
  size_t queue_bytes_ = 0;
  uint64_t queued_lost_records_ = 0;
  int taking_ = 0;
  uint64_t dropped_chunks_ = 0;
  uint64_t dropped_records_ = 0;
  Stats stats_;
  std::atomic<bool> wakes_ = false;

  std::shared_ptr<UplinkWay> loop_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Uplink>> Uplink::Start(Options options) {
  if (absl::Status status = CheckUplinkOptions(options); !status.ok()) return status;
  if (options.files == nullptr) options.files = &KernelFiles();
  if (!options.say) options.say = [](const std::string&) {};
  options.spool.boot_id = options.identity.boot_id;
  auto spool = Spool::Open(*options.files, options.spool);
  if (!spool.ok()) return spool.status();
  return std::make_unique<RunningUplink>(std::move(options), *std::move(spool));
}

}  // namespace vcpulse::stream
