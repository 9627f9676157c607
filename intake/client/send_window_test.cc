#include "intake/client/send_window.h"

#include <gtest/gtest.h>

namespace tributary::intake {
namespace {

constexpr size_t kInDoubt = static_cast<size_t>(LossReason::kInDoubt);

Outgoing Of(size_t samples, uint64_t pending = 0, uint64_t lost = 0) {
  Outgoing out;
  out.batch.samples.resize(samples);
  out.batch.dictionary = std::make_shared<Dictionary>();
  out.delta.lost[static_cast<size_t>(LossReason::kRingFull)] = lost;
  out.pending = pending;
  return out;
}

std::vector<uint64_t> Acked(SendWindow& window, uint64_t sequence) {
  std::vector<uint64_t> acked;
  window.Ack(sequence, [&](const SendWindow::Entry& entry) { acked.push_back(entry.batch.sequence); });
  return acked;
}

TEST(SendWindow, ReportsTotalsOfItsBatchesPlusPending) {
  SendWindow window;
  window.Add(Of(10, 7));
  window.Add(Of(5, 2, 3));
  EXPECT_EQ(window.entries()[0].batch.accounting.captured, 17u);
  EXPECT_EQ(window.entries()[1].batch.accounting.captured, 20u);
  EXPECT_EQ(window.entries()[1].batch.accounting.TotalLost(), 3u);
  EXPECT_EQ(window.samples(), 15u);
  EXPECT_EQ(window.totals().captured, 18u);
  EXPECT_EQ(window.durable().captured, 0u);
  EXPECT_EQ(Acked(window, 1), (std::vector<uint64_t>{1}));
  EXPECT_EQ(window.durable().captured, 10u);
  EXPECT_EQ(window.next_sequence(), 3u);
}

TEST(SendWindow, CountsEachTypeByItself) {
  SendWindow window;
  Outgoing out = Of(10, 7);
  for (size_t i = 0; i < 4; ++i) out.batch.samples[i].type = SampleType::kOffCpu;
  out.pending.Add(SampleType::kOffCpu, 2);
  out.delta.LostFor(LossReason::kHoldOverflow).Add(SampleType::kOffCpu, 3);
  window.Add(std::move(out));
  const Accounting& accounting = window.entries()[0].batch.accounting;
  EXPECT_EQ(accounting.captured.Of(SampleType::kOffCpu), 9u) << "4 sent, 3 lost, 2 on their way";
  EXPECT_EQ(accounting.captured.cpu(), 13u);
  EXPECT_EQ(window.Reject(1).Of(SampleType::kOffCpu), 4u);
  EXPECT_EQ(accounting.TotalLost().Of(SampleType::kOffCpu), 7u);
  EXPECT_EQ(accounting.TotalLost().cpu(), 6u);
}

TEST(SendWindow, SendsTheSameAgainAfterARewind) {
  SendWindow window;
  for (int i = 0; i < 3; ++i) window.Add(Of(1));
  for (int i = 0; i < 2; ++i) window.Sent(100);
  EXPECT_EQ(window.wire_bytes(), 200u);
  EXPECT_EQ(Acked(window, 1).size(), 1u);
  EXPECT_EQ(window.wire_bytes(), 100u);
  EXPECT_EQ(window.Next()->batch.sequence, 3u);
  window.Rewind();
  EXPECT_EQ(window.Next()->batch.sequence, 2u);
  EXPECT_EQ(window.wire_bytes(), 0u);
}

TEST(SendWindow, CountsARejectedBatchAsLostInItAndAllLaterBatches) {
  SendWindow window;
  for (int i = 0; i < 3; ++i) window.Add(Of(4));
  EXPECT_EQ(window.Reject(2), 4u);
  EXPECT_EQ(window.Reject(2), 0u);
  const size_t rejected = static_cast<size_t>(LossReason::kRejected);
  EXPECT_EQ(window.entries()[0].batch.accounting.lost[rejected], 0u);
  EXPECT_EQ(window.entries()[1].batch.accounting.lost[rejected], 4u);
  EXPECT_EQ(window.entries()[2].batch.accounting.lost[rejected], 4u);
  EXPECT_EQ(window.entries()[2].batch.accounting.captured, 12u);
  EXPECT_TRUE(window.entries()[1].batch.samples.empty());
  EXPECT_EQ(window.samples(), 8u);
}

TEST(SendWindow, AddsGivenUpBatchesToTheTotalsIfStoredAfterAll) {
  SendWindow window;
  window.Add(Of(1));
  (void)Acked(window, 1);
  window.Add(Of(2));
  window.Add(Of(4));
  const std::vector<SendWindow::Entry> given_up = window.GiveUp();
  ASSERT_EQ(given_up.size(), 2u);
  EXPECT_EQ(given_up[0].delta.captured, 2u);
  EXPECT_EQ(given_up[0].delta.lost[kInDoubt], 0u);
  EXPECT_EQ(window.totals().captured, 1u);
  EXPECT_EQ(window.next_sequence(), 4u) << "their numbers are not used again";
  window.Add(Of(8));
  window.Settle(2);  // the first of them had arrived
  EXPECT_EQ(window.entries()[0].batch.accounting.captured, 11u);
  window.Settle(3);
  EXPECT_EQ(window.entries()[0].batch.accounting.captured, 11u) << "settled once";
}

Outgoing WithEvents(size_t samples, uint32_t events) {
  Outgoing out = Of(samples);
  out.batch.events.resize(1);
  out.batch.events[0].kind = ProcessEventKind::kSum;
  out.batch.events[0].events = events;
  return out;
}

TEST(SendWindow, EventsOfADurableBatchThatWasSentWithoutThemAreNotTaken) {
  constexpr LossReason kNotTaken = LossReason::kNotTaken;
  SendWindow window;
  for (uint32_t i = 1; i <= 3; ++i) window.Add(WithEvents(2, i * 10));
  window.Sent(1, /*without_events=*/true);
  window.Sent(1, /*without_events=*/true);
  const SampleCounts untaken = window.Ack(1, [](const SendWindow::Entry& entry) {
    EXPECT_EQ(entry.samples.events(), 0u);
    EXPECT_EQ(entry.delta.LostFor(kNotTaken).events(), 10u);
    EXPECT_EQ(entry.delta.captured.events(), 10u);
  });
  EXPECT_EQ(untaken.events(), 10u);
  EXPECT_EQ(untaken.total(), 0u);
  EXPECT_EQ(window.totals().LostFor(kNotTaken).events(), 10u);
  EXPECT_EQ(window.durable().LostFor(kNotTaken).events(), 10u);
  EXPECT_EQ(window.totals().captured.events(), 60u);
  for (const SendWindow::Entry& entry : window.entries()) {
    EXPECT_EQ(entry.before.LostFor(kNotTaken).events(), 10u);
    EXPECT_EQ(entry.batch.accounting.LostFor(kNotTaken).events(), 10u);
  }
  // After an upgrade of the reducer, the second batch is sent again with its events.
  window.Rewind();
  window.Sent(1);
  EXPECT_TRUE(window.Ack(2, [](const SendWindow::Entry&) {}).empty());
  EXPECT_EQ(window.totals().LostFor(kNotTaken).events(), 10u);
}

TEST(SendWindow, EventsOfAGivenUpBatchThatWasStoredWithoutThemAreNotTaken) {
  SendWindow window;
  window.Add(WithEvents(2, 10));
  window.Add(WithEvents(2, 20));
  window.Sent(1, /*without_events=*/true);
  window.Sent(1, /*without_events=*/true);
  (void)window.GiveUp();
  window.Settle(1);
  EXPECT_EQ(window.totals().captured.events(), 10u);
  EXPECT_EQ(window.totals().LostFor(LossReason::kNotTaken).events(), 10u);
}

TEST(SendWindow, RejectsEventsAndCountsTheirMemory) {
  SendWindow window;
  window.Add(WithEvents(2, 10));
  EXPECT_EQ(window.record_bytes(), 2 * sizeof(Sample) + sizeof(ProcessEvent));
  const SampleCounts rejected = window.Reject(1);
  EXPECT_EQ(rejected.total(), 2u);
  EXPECT_EQ(rejected.events(), 10u);
  EXPECT_TRUE(window.entries()[0].batch.events.empty());
  EXPECT_EQ(window.record_bytes(), 0u);
  EXPECT_EQ(window.totals().LostFor(LossReason::kRejected).events(), 10u);
}

TEST(SendWindow, ContinuesAfterTheReducersLastBatch) {
  SendWindow window;
  Accounting totals;
  totals.captured = 100;
  window.Begin(6, totals);
  EXPECT_EQ(window.next_sequence(), 7u);
  (void)Acked(window, 9);
  EXPECT_EQ(window.next_sequence(), 10u);
  Outgoing out = Of(1);
  out.base = Accounting{.captured = 130};
  window.Add(std::move(out));
  EXPECT_EQ(window.entries()[0].batch.accounting.captured, 131u);
}

TEST(SendWindow, ReportedPendingIgnoresGivenUpBatches) {
  SendWindow window;
  window.Add(Of(3, 20));
  window.Add(Of(5, 16));
  window.Add(Of(7, 0));
  window.Ack(1, [](const SendWindow::Entry&) {});
  EXPECT_EQ(window.reported_pending(), 0u);
  EXPECT_EQ(window.GiveUp().size(), 2u);
  EXPECT_EQ(window.reported_pending(), 20u) << "a batch that was given up reported nothing";
  window.Settle(2);
  EXPECT_EQ(window.reported_pending(), 16u) << "but one of them was stored, and its reducer waits for 16 samples";
  EXPECT_EQ(window.durable().captured, 8u);
  window.Add(Of(0, 0));
  EXPECT_EQ(window.reported_pending(), 0u);
}

}  // namespace
}  // namespace tributary::intake
