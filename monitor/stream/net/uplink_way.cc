#include "monitor/stream/net/uplink_way.h"

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"

namespace vcpulse::stream {
namespace {

constexpr int64_t kSyncPeriod_ns = 5'000'000'000;
constexpr int64_t kSayDiskAgain_ns = 10'000'000'000;

}  // namespace

void UplinkWay::Keep(const std::deque<Offered>& offered) {
  for (const Offered& one : offered) {
    if (one.header) {
      spool_->Add(*one.header, one.chunk);
    } else {
      spool_->AddLost(one.stream, one.lost);
    }
  }
  SayDiskStatus();
}

void UplinkWay::CareForSpool(int64_t now_ns) {
  if (now_ns - synced_ns_ > kSyncPeriod_ns) {
    synced_ns_ = now_ns;
    spool_->Sync();
  }
  SayDiskStatus();
}

void UplinkWay::SayDiskStatus() {
  const std::string now(spool_->disk_status().message());
  // A disk that is nearly full takes this and refuses that.
  if (now == said_disk_ || MonotonicNow_ns() - said_disk_ns_ < kSayDiskAgain_ns) return;
  said_disk_ns_ = MonotonicNow_ns();
  options_.say(now.empty()
                   ? std::string("the spool is written again")
                   : absl::StrCat("the spool cannot be written, chunks stay in memory: ", now));
  said_disk_ = now;
}

void UplinkWay::FillFromSpool(Uplink::Stats& stats) const {
  const Spool::Stats spool = spool_->stats();
  stats.lost_chunks += spool.lost_chunks;
  stats.lost_records += spool.lost_records;
  stats.untold_records = spool.untold_records;
  stats.waiting_chunks = spool.chunks;
  stats.spool_bytes = spool.disk_bytes;
  stats.spool_memory_bytes = spool.memory_bytes;
  const Spool::Options& limits = options_.spool;
  stats.spool_limit_bytes =
      limits.directory.empty() ? limits.max_memory_bytes : limits.max_disk_bytes;
}

}  // namespace vcpulse::stream
