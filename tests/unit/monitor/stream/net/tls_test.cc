// Who is let in over TLS, and who is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "monitor/stream/net/follower.h"
#include "tests/fakes/certificates.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class StreamTls : public StreamTest {
 protected:
  // Certificates of a collector on this machine and of agents; one authority.
  void MakeCertificates() {
    ASSERT_TRUE(fakes::MakeAuthority(folder.string(), "ca"));
    ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "server",
                                       "DNS:localhost,IP:127.0.0.1,IP:::1"));
    ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "agent", "DNS:agent"));
  }
  CredentialFiles Credentials(const std::string& name, const std::string& authority = "ca") {
    return {.certificate = Path(name + ".pem"),
            .key = Path(name + ".key"),
            .authorities = Path(authority + ".pem")};
  }
  void StartTlsCollector(const std::vector<std::string>& followers = {}) {
    auto options = CollectorOptions();
    options.listen = {Loopback(Address::Kind::kTls)};
    options.credentials = Credentials("server");
    options.allowed_followers = followers;
    StartCollector(std::move(options));
  }
  Uplink::Options TlsAgent(const std::string& certificate, const std::string& id) {
    auto options = AgentOptions(collector->addresses().front(), id);
    options.credentials = Credentials(certificate);
    return options;
  }
  // An agent of this id and certificate is refused with these words, and nothing is kept of it.
  void ExpectRefused(Uplink::Options options, const std::string& words) {
    const std::string id = options.identity.agent_id;
    const auto agent = StartAgent(std::move(options));
    ASSERT_NE(agent, nullptr);
    OfferAll(*agent, fakes::StreamedChunks(StreamNumber(9), 2, 1));
    EXPECT_TRUE(Eventually([&] { return agent_said.Has(words); })) << agent_said.text();
    EXPECT_EQ(agent->stats().connects, 0U);
    EXPECT_THAT(CollectedChunks(id), testing::IsEmpty());
  }
};

TEST_F(StreamTls, WhatIsSentArrivesOverTls) {
  MakeCertificates();
  StartTlsCollector();
  const auto agent = StartAgent(TlsAgent("agent", "agent"));
  ASSERT_NE(agent, nullptr);
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 40, 1);
  OfferAll(*agent, chunks);
  ASSERT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text() << said.text();
  EXPECT_EQ(CollectedChunks(), chunks);
}

TEST_F(StreamTls, AUriOfTheCertificateMayBeTheAgentsId) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "uri", "URI:spiffe://lab/web"));
  StartTlsCollector();
  const auto agent = StartAgent(TlsAgent("uri", "spiffe://lab/web"));
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 2, 1));
  EXPECT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
}

TEST_F(StreamTls, AnotherAgentsCertificateIsRefused) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "other", "DNS:other"));
  StartTlsCollector();
  ExpectRefused(TlsAgent("other", "agent"), "is not that of agent 'agent'");
}

TEST_F(StreamTls, ACertificateWithoutNamesIsNobodys) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "nameless", ""));
  StartTlsCollector();
  ExpectRefused(TlsAgent("nameless", "nameless"), "is not that of agent 'nameless'");
}

TEST_F(StreamTls, ACertificateOfAnotherAuthorityIsRefused) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeAuthority(folder.string(), "strangers"));
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "strangers", "strange", "DNS:agent"));
  StartTlsCollector();
  ExpectRefused(TlsAgent("strange", "agent"), "unknown ca");
}

TEST_F(StreamTls, AnExpiredCertificateIsRefusedByItsOwnAgentFirst) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "old", "DNS:agent", "2020-01-02"));
  StartTlsCollector();
  const auto agent = Uplink::Start(TlsAgent("old", "agent"));
  ASSERT_FALSE(agent.ok());
  EXPECT_THAT(std::string(agent.status().message()), HasSubstr("has expired"));
}

TEST_F(StreamTls, ACertificateThatExpiresWhileTheAgentRunsIsRefused) {
  MakeCertificates();
  StartTlsCollector();
  auto options = TlsAgent("agent", "agent");
  const auto agent = StartAgent(options);
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 2, 1));
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "agent", "DNS:agent", "2020-01-02"));
  agent->ReloadCredentials();
  EXPECT_TRUE(Eventually([&] { return agent_said.Has("has expired"); })) << agent_said.text();
  EXPECT_FALSE(agent->stats().connected);
  // And goes on once there is a new one.
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "agent", "DNS:agent"));
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(2), 2, 1));
  EXPECT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
}

TEST_F(StreamTls, TheCollectorsCertificateMustBeOfItsHost) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "server", "DNS:elsewhere"));
  StartTlsCollector();
  ExpectRefused(TlsAgent("agent", "agent"), "it does not name 127.0.0.1");
}

TEST_F(StreamTls, ACommonNameIsNotTheHosts) {
  MakeCertificates();
  // The subject is CN=localhost, and there is no other name.
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "localhost", ""));
  auto options = CollectorOptions();
  options.listen = {Loopback(Address::Kind::kTls)};
  options.credentials = Credentials("localhost");
  StartCollector(std::move(options));
  auto agent = TlsAgent("agent", "agent");
  agent.addresses.front().host = "localhost";
  ExpectRefused(agent, "it does not name localhost");
}

TEST_F(StreamTls, TheCollectorTakesNewCertificatesWhenTold) {
  MakeCertificates();
  StartTlsCollector();
  ASSERT_TRUE(fakes::MakeAuthority(folder.string(), "ca"));  // all is issued anew
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "server", "IP:127.0.0.1"));
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "agent", "DNS:agent"));
  const auto agent = StartAgent(TlsAgent("agent", "agent"));
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 2, 1));
  ASSERT_TRUE(Eventually([&] { return !agent->stats().last_error.empty(); }));
  ASSERT_TRUE(collector->ReloadCredentials().ok());
  EXPECT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  std::filesystem::remove(Path("server.key"));
  EXPECT_THAT(std::string(collector->ReloadCredentials().message()), HasSubstr("server.key"));
}

TEST_F(StreamTls, AReloadEndsConnectionsThatTheNewAuthorityDoesNotKnow) {
  MakeCertificates();
  StartTlsCollector();
  const auto agent = StartAgent(TlsAgent("agent", "agent"));
  const auto chunks = fakes::StreamedChunks(StreamNumber(1), 4, 1);
  OfferAll(*agent, {chunks.begin(), chunks.begin() + 2});
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  const uint64_t connects = agent->stats().connects;
  ASSERT_TRUE(collector->ReloadCredentials().ok());
  OfferAll(*agent, {chunks.begin() + 2, chunks.end()});
  ASSERT_TRUE(agent->Finish(seconds(20)).ok());
  EXPECT_EQ(agent->stats().connects, connects) << "nothing has changed";
  ASSERT_TRUE(fakes::MakeAuthority(folder.string(), "ca"));
  ASSERT_TRUE(fakes::MakeCertificate(folder.string(), "ca", "server", "IP:127.0.0.1"));
  ASSERT_TRUE(collector->ReloadCredentials().ok());
  EXPECT_TRUE(Eventually([&] { return said.Has("is not taken any more"); })) << said.text();
  EXPECT_TRUE(Eventually([&] { return !agent->stats().connected; }));
}

TEST_F(StreamTls, ARevokedCertificateIsRefusedAndItsConnectionEnds) {
  MakeCertificates();
  ASSERT_TRUE(fakes::MakeRevocations(folder.string(), "ca", ""));
  auto options = CollectorOptions();
  options.listen = {Loopback(Address::Kind::kTls)};
  options.credentials = Credentials("server");
  options.credentials.revoked = Path("ca.crl");
  StartCollector(std::move(options));
  const auto agent = StartAgent(TlsAgent("agent", "agent"));
  ASSERT_TRUE(agent->AwaitConnected(seconds(20)).ok()) << agent_said.text();
  ASSERT_TRUE(fakes::MakeRevocations(folder.string(), "ca", "agent"));
  ASSERT_TRUE(collector->ReloadCredentials().ok());
  EXPECT_TRUE(Eventually([&] { return said.Has("certificate revoked"); })) << said.text();
  EXPECT_TRUE(Eventually([&] { return !agent->stats().connected; }));
  const uint64_t connects = agent->stats().connects;
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 2, 1));
  EXPECT_FALSE(agent->Finish(std::chrono::milliseconds(500)).ok());
  EXPECT_EQ(agent->stats().connects, connects);
}

TEST_F(StreamTls, AConnectionEndsWithItsCertificate) {
  MakeCertificates();
  ASSERT_TRUE(
      fakes::MakeCertificate(folder.string(), "ca", "agent", "DNS:agent", "now + 3 seconds"));
  StartTlsCollector();
  const auto agent = StartAgent(TlsAgent("agent", "agent"));
  ASSERT_TRUE(agent->AwaitConnected(seconds(20)).ok()) << agent_said.text();
  EXPECT_TRUE(Eventually([&] { return said.Has("has expired"); })) << said.text();
  EXPECT_TRUE(Eventually([&] { return !agent->stats().connected; }));
}

TEST_F(StreamTls, APeerWithoutTlsCostsItsOwnConnection) {
  MakeCertificates();
  StartTlsCollector();
  auto plain = AgentOptions(collector->addresses().front(), "agent");
  plain.addresses.front().kind = Address::Kind::kTcp;
  const auto wrong = StartAgent(plain);
  OfferAll(*wrong, fakes::StreamedChunks(StreamNumber(3), 2, 1));
  const auto agent = StartAgent(TlsAgent("agent", "agent"));
  OfferAll(*agent, fakes::StreamedChunks(StreamNumber(1), 2, 1));
  EXPECT_TRUE(agent->Finish(seconds(20)).ok()) << agent_said.text();
  EXPECT_EQ(wrong->stats().connects, 0U);
}

TEST_F(StreamTls, OverTlsAFollowerSeesItsOwnAloneUnlessAllowed) {
  MakeCertificates();
  StartTlsCollector();
  FollowOptions options{.address = collector->addresses().front(),
                        .identity = {.agent_id = "agent"},
                        .credentials = Credentials("agent"),
                        .chunk = [](const auto&, auto) { return absl::OkStatus(); }};
  options.agent_id = "other";
  EXPECT_THAT(std::string(Follow(options, [] { return false; }).message()),
              HasSubstr("may only follow the agent ids"));
  options.agent_id.clear();  // itself
  EXPECT_TRUE(Follow(options, [&] { return collector->stats().followers == 1; }).ok());
  collector.reset();
  StartTlsCollector({"agent"});
  options.address = collector->addresses().front();
  options.agent_id.clear();
  EXPECT_TRUE(Follow(options, [&] { return collector->stats().followers == 1; }).ok());
}

}  // namespace
}  // namespace vcpulse::stream
