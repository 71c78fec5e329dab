/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of every public struct, where pointers have 64 bits. Compiling is the test. Lines are
 * only added, never changed: layout.py prints new ones, and fails when one is missing.
 */
#include <stddef.h>

#include <admit/admit.h>
#include <admit/backend.h>
#include <admit/backends.h>
#include <admit/ledger.h>
#include <admit/metrics.h>
#include <admit/policy.h>
#include <admit/types.h>

#if UINTPTR_MAX == UINT64_MAX
#define IS(found, bytes) ((found) == (bytes))
#else /* smaller pointers: nothing is larger, or further back */
#define IS(found, bytes) ((found) <= (bytes))
#endif
#define SIZE(type, bytes) _Static_assert(IS(sizeof(struct type), bytes), "size of struct " #type)
#define AT(type, member, bytes)                                                                    \
    _Static_assert(IS(offsetof(struct type, member), bytes), "place of " #type "." #member)

SIZE(adm_bytes, 16);
AT(adm_bytes, data, 0);
AT(adm_bytes, length, 8);

SIZE(adm_time, 16);
AT(adm_time, mono_ns, 0);
AT(adm_time, wall_ns, 8);

SIZE(adm_id, 16);
AT(adm_id, high, 0);
AT(adm_id, low, 8);

SIZE(adm_descriptor, 40);
AT(adm_descriptor, key, 0);
AT(adm_descriptor, value, 16);
AT(adm_descriptor, key_id, 32);
AT(adm_descriptor, reserved0, 36);

SIZE(adm_amount, 16);
AT(adm_amount, unit, 0);
AT(adm_amount, flags, 4);
AT(adm_amount, value, 8);

SIZE(adm_request, 104);
AT(adm_request, size, 0);
AT(adm_request, flags, 4);
AT(adm_request, descriptors, 8);
AT(adm_request, descriptor_count, 16);
AT(adm_request, amounts, 24);
AT(adm_request, amount_count, 32);
AT(adm_request, cost, 40);
AT(adm_request, attempt, 48);
AT(adm_request, deadline_ns, 64);
AT(adm_request, reserved, 72);

SIZE(adm_decision, 2336);
AT(adm_decision, size, 0);
AT(adm_decision, flags, 4);
AT(adm_decision, verdict, 8);
AT(adm_decision, reason, 12);
AT(adm_decision, http_status, 16);
AT(adm_decision, rule_count, 20);
AT(adm_decision, shadow_count, 24);
AT(adm_decision, unknown_count, 28);
AT(adm_decision, retry_after_ms, 32);
AT(adm_decision, lease, 40);
AT(adm_decision, id, 56);
AT(adm_decision, policy_version, 72);
AT(adm_decision, table_version, 144);
AT(adm_decision, names_used, 216);
AT(adm_decision, reserved0, 220);
AT(adm_decision, reserved, 224);
AT(adm_decision, names, 256);

SIZE(adm_class, 88);
AT(adm_class, kind, 0);
AT(adm_class, flags, 4);
AT(adm_class, rule, 8);
AT(adm_class, origin, 24);
AT(adm_class, capacity, 40);
AT(adm_class, refill, 48);
AT(adm_class, per_ns, 56);
AT(adm_class, max_partitions, 64);
AT(adm_class, handle, 72);
AT(adm_class, group, 80);

SIZE(adm_replica_scope, 24);
AT(adm_replica_scope, scope, 0);
AT(adm_replica_scope, replicas, 16);

SIZE(adm_class_set, 56);
AT(adm_class_set, owner, 0);
AT(adm_class_set, classes, 16);
AT(adm_class_set, class_count, 24);
AT(adm_class_set, scopes, 32);
AT(adm_class_set, scope_count, 40);
AT(adm_class_set, sequence, 48);

SIZE(adm_term, 104);
AT(adm_term, kind, 0);
AT(adm_term, flags, 4);
AT(adm_term, class_handle, 8);
AT(adm_term, scope, 16);
AT(adm_term, replicas, 32);
AT(adm_term, partition, 40);
AT(adm_term, amount, 56);
AT(adm_term, limit, 64);
AT(adm_term, unit, 72);
AT(adm_term, window, 76);
AT(adm_term, verdict, 80);
AT(adm_term, reserved0, 84);
AT(adm_term, level, 88);
AT(adm_term, passes_at_ns, 96);

SIZE(adm_meter, 16);
AT(adm_meter, unit, 0);
AT(adm_meter, flags, 4);
AT(adm_meter, total, 8);

SIZE(adm_take, 168);
AT(adm_take, mode, 0);
AT(adm_take, flags, 4);
AT(adm_take, sequence, 8);
AT(adm_take, terms, 16);
AT(adm_take, term_count, 24);
AT(adm_take, meter_count, 28);
AT(adm_take, meters, 32);
AT(adm_take, ttl_ns, 40);
AT(adm_take, shadow_ttl_ns, 48);
AT(adm_take, seed, 56);
AT(adm_take, attempt, 72);
AT(adm_take, attempt_digest, 88);
AT(adm_take, attempt_life_ns, 104);
AT(adm_take, memo, 112);
AT(adm_take, verdict, 128);
AT(adm_take, repeated, 132);
AT(adm_take, lease, 136);
AT(adm_take, memo_out, 152);
AT(adm_take, memo_out_length, 160);

SIZE(adm_settlement, 16);
AT(adm_settlement, totals, 0);
AT(adm_settlement, total_count, 8);
AT(adm_settlement, final_all, 12);

SIZE(adm_sweep, 32);
AT(adm_sweep, budget, 0);
AT(adm_sweep, looked, 8);
AT(adm_sweep, freed, 16);
AT(adm_sweep, done, 24);
AT(adm_sweep, reserved0, 28);

SIZE(adm_op, 160);
AT(adm_op, args, 72);
AT(adm_op, args.classes, 72);
AT(adm_op, args.take, 72);
AT(adm_op, args.settle, 72);
AT(adm_op, args.sweep, 72);
AT(adm_op, size, 0);
AT(adm_op, kind, 4);
AT(adm_op, now, 8);
AT(adm_op, max_skew_ns, 24);
AT(adm_op, deadline_ns, 32);
AT(adm_op, lease, 40);
AT(adm_op, result, 56);
AT(adm_op, outcome, 60);
AT(adm_op, units, 64);
AT(adm_op, judged, 80);
AT(adm_op, backend_use, 96);
AT(adm_op, library_use, 112);
AT(adm_op, reserved, 144);

SIZE(adm_watch, 16);
AT(adm_watch, fd, 0);
AT(adm_watch, reserved0, 4);
AT(adm_watch, deadline_ns, 8);

SIZE(adm_backend_info, 120);
AT(adm_backend_info, size, 0);
AT(adm_backend_info, threads, 4);
AT(adm_backend_info, capabilities, 8);
AT(adm_backend_info, reserved0, 12);
AT(adm_backend_info, classes, 16);
AT(adm_backend_info, classes_max, 24);
AT(adm_backend_info, partitions, 32);
AT(adm_backend_info, partitions_max, 40);
AT(adm_backend_info, leases, 48);
AT(adm_backend_info, leases_max, 56);
AT(adm_backend_info, attempts, 64);
AT(adm_backend_info, attempts_max, 72);
AT(adm_backend_info, expired, 80);
AT(adm_backend_info, reserved, 88);

SIZE(adm_backend_ops, 64);
AT(adm_backend_ops, size, 0);
AT(adm_backend_ops, abi, 4);
AT(adm_backend_ops, name, 8);
AT(adm_backend_ops, start, 16);
AT(adm_backend_ops, close, 24);
AT(adm_backend_ops, poll, 32);
AT(adm_backend_ops, cancel, 40);
AT(adm_backend_ops, watch, 48);
AT(adm_backend_ops, describe, 56);

SIZE(adm_backend, 16);
AT(adm_backend, ops, 0);
AT(adm_backend, self, 8);

SIZE(adm_odometer, 72);
AT(adm_odometer, t0_ns, 0);
AT(adm_odometer, v0, 8);
AT(adm_odometer, a, 16);
AT(adm_odometer, b, 24);
AT(adm_odometer, capacity, 32);
AT(adm_odometer, refill, 40);
AT(adm_odometer, per_ns, 48);
AT(adm_odometer, floor, 56);
AT(adm_odometer, shift, 64);
AT(adm_odometer, reserved0, 68);

SIZE(adm_clock, 16);
AT(adm_clock, self, 0);
AT(adm_clock, now, 8);

SIZE(adm_allocator, 24);
AT(adm_allocator, self, 0);
AT(adm_allocator, allocate, 8);
AT(adm_allocator, release, 16);

SIZE(adm_random, 16);
AT(adm_random, self, 0);
AT(adm_random, fill, 8);

SIZE(adm_gate_options, 184);
AT(adm_gate_options, size, 0);
AT(adm_gate_options, flags, 4);
AT(adm_gate_options, policy, 8);
AT(adm_gate_options, name_space, 16);
AT(adm_gate_options, backend, 32);
AT(adm_gate_options, clock, 48);
AT(adm_gate_options, allocator, 64);
AT(adm_gate_options, allocator_reserved, 88);
AT(adm_gate_options, random, 96);
AT(adm_gate_options, on_event, 112);
AT(adm_gate_options, on_event_self, 120);
AT(adm_gate_options, backend_timeout_ns, 128);
AT(adm_gate_options, signals_max, 136);
AT(adm_gate_options, pending_max, 144);
AT(adm_gate_options, reserved, 152);

SIZE(adm_rule_report, 168);
AT(adm_rule_report, size, 0);
AT(adm_rule_report, matched, 4);
AT(adm_rule_report, off, 8);
AT(adm_rule_report, shadow, 12);
AT(adm_rule_report, denies, 16);
AT(adm_rule_report, reason, 20);
AT(adm_rule_report, rule, 24);
AT(adm_rule_report, type, 32);
AT(adm_rule_report, unit, 40);
AT(adm_rule_report, origin, 48);
AT(adm_rule_report, mismatch, 56);
AT(adm_rule_report, entry, 72);
AT(adm_rule_report, stateful, 88);
AT(adm_rule_report, has_amount, 92);
AT(adm_rule_report, level, 96);
AT(adm_rule_report, limit, 104);
AT(adm_rule_report, amount, 112);
AT(adm_rule_report, replicas, 120);
AT(adm_rule_report, retry_after_ms, 128);
AT(adm_rule_report, reserved, 136);

SIZE(adm_completion, 64);
AT(adm_completion, size, 0);
AT(adm_completion, outcome, 4);
AT(adm_completion, status, 8);
AT(adm_completion, reserved0, 12);
AT(adm_completion, ticket, 16);
AT(adm_completion, user, 24);
AT(adm_completion, decision, 32);
AT(adm_completion, reserved, 40);

SIZE(adm_diag, 80);
AT(adm_diag, size, 0);
AT(adm_diag, severity, 4);
AT(adm_diag, line, 8);
AT(adm_diag, column, 12);
AT(adm_diag, code, 16);
AT(adm_diag, name, 24);
AT(adm_diag, pointer, 32);
AT(adm_diag, message, 40);
AT(adm_diag, nearest, 48);
AT(adm_diag, file, 56);
AT(adm_diag, length, 64);
AT(adm_diag, reserved0, 68);
AT(adm_diag, reserved, 72);

SIZE(adm_policy_options, 56);
AT(adm_policy_options, size, 0);
AT(adm_policy_options, flags, 4);
AT(adm_policy_options, file, 8);
AT(adm_policy_options, allocator, 16);
AT(adm_policy_options, reserved, 24);

SIZE(adm_plain_options, 88);
AT(adm_plain_options, size, 0);
AT(adm_plain_options, flags, 4);
AT(adm_plain_options, partitions_max, 8);
AT(adm_plain_options, leases_max, 16);
AT(adm_plain_options, attempts_max, 24);
AT(adm_plain_options, classes_max, 32);
AT(adm_plain_options, allocator, 40);
AT(adm_plain_options, random, 48);
AT(adm_plain_options, reserved, 56);

SIZE(adm_memory_options, 96);
AT(adm_memory_options, size, 0);
AT(adm_memory_options, flags, 4);
AT(adm_memory_options, partitions_max, 8);
AT(adm_memory_options, leases_max, 16);
AT(adm_memory_options, attempts_max, 24);
AT(adm_memory_options, classes_max, 32);
AT(adm_memory_options, threads_max, 40);
AT(adm_memory_options, allocator, 48);
AT(adm_memory_options, random, 56);
AT(adm_memory_options, reserved, 64);

SIZE(adm_ledger_options, 88);
AT(adm_ledger_options, size, 0);
AT(adm_ledger_options, flags, 4);
AT(adm_ledger_options, partitions_max, 8);
AT(adm_ledger_options, leases_max, 16);
AT(adm_ledger_options, attempts_max, 24);
AT(adm_ledger_options, classes_max, 32);
AT(adm_ledger_options, random, 40);
AT(adm_ledger_options, reserved_pointer, 48);
AT(adm_ledger_options, reserved, 56);

SIZE(adm_event, 152);
AT(adm_event, size, 0);
AT(adm_event, kind, 4);
AT(adm_event, now, 8);
AT(adm_event, decision_id, 24);
AT(adm_event, lease, 40);
AT(adm_event, decision, 56);
AT(adm_event, descriptors, 64);
AT(adm_event, descriptor_count, 72);
AT(adm_event, amounts, 80);
AT(adm_event, amount_count, 88);
AT(adm_event, cost, 96);
AT(adm_event, outcome, 104);
AT(adm_event, result, 108);
AT(adm_event, final_all, 112);
AT(adm_event, reserved0, 116);
AT(adm_event, reserved, 120);

int main(void)
{
    return 0;
}
