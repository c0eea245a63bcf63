#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "monitor/stream/net/peer.h"

namespace vcpulse::stream {

// Takes whatever a peer sends.
class IndifferentOwner final : public Peer::Owner {
 public:
  absl::Status Hello(Peer& /*peer*/, const v1::Hello& /*hello*/) override {
    return absl::OkStatus();
  }
  absl::Status Chunk(Peer& /*peer*/, const timeline::ChunkHeader& /*header*/,
                     std::span<const uint8_t> /*bytes*/) override {
    return absl::OkStatus();
  }
  absl::Status Gap(Peer& /*peer*/, const v1::LostRecords& /*lost*/) override {
    return absl::OkStatus();
  }
  void Ended(Peer& /*peer*/, const absl::Status& /*why*/) override {}
  bool MayRead(const Peer& /*peer*/) const override { return true; }
  int64_t NextRead_ns(const Peer& /*peer*/, int64_t now_ns) const override { return now_ns; }
  void Took(const Peer& /*peer*/, int64_t /*time_ns*/, int64_t /*now_ns*/) override { ++reads; }
  void HoldsMore() override {}

  int reads = 0;
};

}  // namespace vcpulse::stream
