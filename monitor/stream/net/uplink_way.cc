#include "monitor/stream/net/uplink_way.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/timeline/recut.h"

namespace vcpulse::stream {
namespace {

constexpr int64_t kSyncPeriod_ns = 5'000'000'000;
constexpr int64_t kSayDiskAgain_ns = 10'000'000'000;

}  // namespace

void UplinkWay::Keep(const std::deque<Offered>& offered) {
  for (const Offered& one : offered) {
    if (one.header && one.chunk.size() > kMaxChunkBytes) {
      KeepInPieces(one);
    } else if (one.header) {
      spool_->Add(*one.header, one.chunk);
    } else {
      spool_->AddLost(one.stream, one.lost);
    }
  }
  SayDiskStatus();
}

void UplinkWay::KeepInPieces(const Offered& offered) {
  uint64_t next = offered.header->first_sequence;
  const absl::Status recut = timeline::RecutChunk(
      offered.chunk, kMaxChunkBytes, [this, &next](std::span<const uint8_t> piece) {
        const auto header = timeline::DecodeChunkHeader(piece);
        if (!header.ok()) return header.status();
        spool_->Add(*header, piece);
        next = header->last_sequence + 1;
        return absl::OkStatus();
      });
  if (recut.ok()) return;
  v1::LostRecords lost = timeline::LostChunk(*offered.header, v1::LostRecords::REASON_TOO_LARGE);
  options_.say(absl::StrCat("records ", next, " to ", lost.last_sequence(),
                            " cannot be sent: ", recut.message()));
  lost.set_first_sequence(next);
  ++stats_.lost_chunks;
  stats_.lost_records += lost.last_sequence() - next + 1;
  spool_->AddLost(offered.stream, lost);
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
