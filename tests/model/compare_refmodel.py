#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random scenarios through the reference model in Python, when it is present, and through the C model: they must agree.

usage: compare_refmodel.py DRIVER [REFMODEL] [--operations N] [--seconds S] [--seed N]

REFMODEL: path of refmodel.py; else the environment variable ADMIT_REFMODEL. Absent: exit 77 (skipped), with the reason.
The reference model is exact rational arithmetic, the C model floors each class's odometer on a grid. Where a level or a
moment lies within (1 + 2 x changes of the class's numbers) grid units of the boundary, either answer is right; such cases are
counted, and a scenario that parted there ends. Where decisions of this project differ from the reference model, it is patched
below, each patch with its reason."""
import argparse, copy, importlib.util, math, os, random, subprocess, sys, time
from fractions import Fraction as F

NS = 10**6
NEVER = 2**64 - 1
WORD = 2**62 - 2**59 - 1


# ------------------------------------------------------------------------------------------------ the reference, patched

def shift_of(n, scale):
    """grid of a class: the finest on which it runs at most one unit per ns and a full bucket stays below 2^59"""
    capacity = min(n['capacity'] * scale, 10**12)
    per = n['per'] * NS
    rate = min(n['refill'] * scale, per)
    by_capacity = 59 - capacity.bit_length()
    return by_capacity if rate == 0 else min((per // rate).bit_length() - 1, by_capacity)


def patch(ref):
    class Odometer(ref.Odometer):
        """counts its changes and remembers its coarsest grid, for the tolerance only"""
        scale = 1

        def __init__(self, now, n):
            super().__init__(now, n)
            self.changes, self.unit, self.finest = 0, F(0), F(1)
            self.note(n)

        def note(self, n):
            for scale in (1, 1024):             # whichever applies: the coarser one bounds the tolerance
                self.unit = max(self.unit, F(1, 2**shift_of(n, scale)))
                self.finest = min(self.finest, F(1, 2**shift_of(n, scale)))

        def change(self, now, n):
            if n != self.n:
                self.changes += 1
                self.note(n)
            super().change(now, n)

        def tolerance(self):
            return (1 + 2 * self.changes) * self.unit
    ref.Odometer = Odometer

    class Gate(ref.Gate):
        def __init__(self, policy):
            self.force, self.asked, self.table_version = set(), {}, None
            self.saturated = False              # from then on words saturate, and the two may differ
            self.reset()
            super().__init__(policy)

        def reset(self):
            """what the next operation sees: whether a verdict stood on a boundary, and the range of each exact wait"""
            self.border, self.ranges = False, {}

        # ---- the wall clock is sampled at every operation, not only where a quota is looked at
        def clock(self, t):
            if self.wall is None or t >= self.wall or self.wall - t > self.policy['skew']:
                self.wall = t
            return super().clock(t)

        # ---- a class that a publish removed is as new once all its buckets are full again and nothing may settle on it
        def refresh(self, now):
            for dark, st in ((False, self.live), (True, self.dark)):
                for cid in [c for c in st.odo if (dark, c[0], c[1]) not in self.force and self.idle(st, c, now)]:
                    del st.odo[cid]
                    for b in [b for b in st.bucket if b[0] == cid]:
                        del st.bucket[b]
            super().refresh(now)
            self.force = {(r['shadow'], self.identity(r), name) for r in self.policy['rules'] if r['type'] == 'token_bucket'
                          for name, _ in self.classes(r)}

        def idle(self, st, cid, now):
            o = st.odo[cid]
            low = o.v(now) - o.n['capacity']
            if (o.floor is not None and o.floor > low) or any(e > low for b, e in st.bucket.items() if b[0] == cid):
                return False
            return not any(not l['closed'] and not l['diverted'] and now < l['exp'] + l['ttl'] and i.get('bucket', (None,))[0] == cid
                           and (i['rule']['settle'] == 'exact' or i['rule']['charge'] == 'completion')
                           for l in st.leases.values() for i in l['items'])

        # ---- scaled concurrency limits saturate at 10^12, like every scaled number
        def limit(self, r, n, d, now):
            k = self.count(d.get(r['scope']), now) if r['replicas'] else 1
            x = min(n['limit'] * k, ref.MAX)
            if 'fraction' in n:
                x = max(1, math.floor(n['fraction'] * x)) if x else 0
            return x

        # ---- a quota's window does not go back while the clock is less than the skew before its begin; further back the word
        # counts in the earlier window and carries what is used. A word with nothing used is as new. Looking changes nothing,
        # only a charge writes.
        def begin(self, r, i):
            if r['window'] == 'day':
                return i * 86400000
            return int(ref.datetime.datetime(i[0], i[1], 1, tzinfo=ref.datetime.timezone.utc).timestamp()) * 1000

        def seen_window(self, r, q):
            w, end = super().window(r, self.wall)
            if q is not None and q[1] > 0 and q[0] > w:
                b = self.begin(r, q[0])
                keep, self.wall = self.wall, None
                ahead, end = super().window(r, b)      # until then what is used counts, wherever the clock stands
                self.wall = keep
                if b - self.wall <= self.policy['skew']:
                    w = ahead
            return w, end

        def word(self, r, d):
            st = self.dark if r['shadow'] else self.live
            return st.quota.get((self.identity(r), self.key(r, d)))

        def window(self, r, t):
            return self.seen_window(r, self.looked)

        def used(self, st, r, d, t):
            q = self.looked = st.quota.get((self.identity(r), self.key(r, d)))
            w, _ = self.seen_window(r, q)
            return 0 if q is None or q[0] < w else q[1]

        # ---- amount 0 needs no room; live partitions are those whose state differs from new; the wait is known when one
        # too many is live; every matching class sees a change of replicas, whoever denies
        def room(self, r, d, t, now):
            if r['max'] is None or (self.asked.get(r['unit']) == 0 and r['charge'] != 'completion'):
                return None
            st, ident = self.live, self.identity(r)
            mine = self.key(r, d)
            if r['type'] == 'token_bucket':
                n, name = self.pick(r, d)
                if n is None:
                    return None
                cid, _ = self.odometer(st, r, n, name, d, now)
                waits, low, high = {}, [], []
                for b, e in st.bucket.items():
                    if b[0][0] != ident:
                        continue
                    o = st.odo[b[0]]
                    new, tol = o.empty(now, None), o.tolerance()
                    if abs(e - new) <= tol:
                        self.border = True
                    if e <= new:
                        continue
                    waits[b] = None
                    if o.n['refill']:
                        at = lambda x: max(1, math.ceil(o.t0 + (x + o.n['capacity'] - o.v0) * F(o.n['per'], o.n['refill'])) - self.raw(t))
                        waits[b] = at(e)
                        low.append(at(e - tol)); high.append(at(e + tol))
                if (cid, mine) in waits or len(waits) < r['max']:
                    return None
                known = sorted(w for w in waits.values() if w is not None)
                need = len(waits) - r['max']
                if need > 0 or not known or known[0] + self.raw(t) >= NEVER // NS:
                    return False
                self.ranges[r['id']] = (min(low), min(high))
                return known[0]
            if r['type'] == 'concurrency':
                keys = {}
                for l in st.leases.values():
                    if l['live'] and now < l['exp']:
                        for k, x in l['hold'].items():
                            keys[k] = keys.get(k, 0) + x
                keys = {k for k, x in keys.items() if x > 0 and k[0] == ident}
            else:
                keys = {k for k, q in st.quota.items() if k[0] == ident and q[1] > 0 and q[0] >= self.seen_window(r, q)[0]}
            return None if (ident, mine) in keys or len(keys) < r['max'] else False

        def judge(self, st, r, d, amounts, t, now):
            n, name = self.pick(r, d)
            if r['type'] == 'token_bucket' and n is not None:
                cid, o = self.odometer(st, r, n, name, d, now)
                a = 1 if r['charge'] == 'completion' else amounts.get(r['unit'])
                e = o.empty(now, st.bucket.get((cid, self.key(r, d))))
                if a and abs(o.v(now) - e - a) <= o.tolerance():
                    self.border = True
            if r['type'] == 'quota':
                self.looked = st.quota.get((self.identity(r), self.key(r, d)))
            verdict, wait = super().judge(st, r, d, amounts, t, now)
            if verdict == 'rate_exceeded':
                at = lambda x: math.ceil(o.t0 + (x + a - o.v0) * F(o.n['per'], o.n['refill']))
                if st is self.live:
                    self.ranges[r['id']] = tuple(max(1, at(x) - self.raw(t)) for x in (e - o.tolerance(), e + o.tolerance()))
                if at(e) >= NEVER // NS:
                    wait = None                 # beyond what a time can be: not known
                    self.unknown = True
            elif verdict == 'quota_exceeded' and st is self.live:
                self.ranges[r['id']] = (wait, wait)
            return verdict, wait

        def admit(self, t, d, cost, amounts=None, attempt=None):
            # what room and the classes need to know beforehand
            self.asked = {**(amounts or {}), 'cost': cost, 'requests': 1}
            if 'tokens' not in self.asked and ('input_tokens' in self.asked or 'output_tokens' in self.asked):
                self.asked['tokens'] = self.asked.get('input_tokens', 0) + self.asked.get('output_tokens', 0)
            self.unknown = False
            known = self.attempts.get(attempt)
            if known and self.peek(t) >= max(known['until'], known['lease']['exp'] if known['lease'] and not known['lease']['closed'] else 0):
                known = None
            out = super().admit(t, d, cost, amounts, attempt)
            if known and out.get('shadow'):
                out['shadow'] = []              # what shadow rules say is reported once
            if out.get('reason') == 'key_space_full':
                for r in self.policy['rules']:
                    n, name = self.pick(r, d)
                    if r['type'] == 'token_bucket' and not r['shadow'] and ref.holds(r['match'], d) and n is not None:
                        self.odometer(self.live, r, n, name, d, self.seen)
            if self.unknown and out.get('retry_after_ms') is not None and out['reason'] != 'key_space_full':
                out['retry_after_ms'] = None
            if 'reason' in out and 'table' not in out:
                out['table'] = self.table_version
                if attempt in self.attempts and 'table' not in self.attempts[attempt]['answer']:
                    self.attempts[attempt]['answer']['table'] = self.table_version
            return out

        def take(self, st, r, d, amounts, t, now, lease):
            self.looked = self.word(r, d) if r['type'] == 'quota' else None
            super().take(st, r, d, amounts, t, now, lease)
            self.note_debts()

        # ---- a word of an earlier window, or of none, is as new in this one
        def correct(self, l, item, x, now, t, how):
            r, q = item['rule'], self.live.quota.get(item['key'])
            if r['type'] == 'quota' and r['settle'] == 'exact' and q is not None:
                w = self.seen_window(r, q)[0]
                if w == item['window'] and (q[0] < w or q[1] == 0):
                    q = self.live.quota[item['key']] = (w, 0)
            self.looked = q
            super().correct(l, item, x, now, t, how)
            self.note_debts()

        def complete(self, l, item, now):
            super().complete(l, item, now)
            self.note_debts()

        # ---- bucket words saturate at 2^62 - 2^59 - 1: beyond that the two may differ
        def note_debts(self):
            for st in (self.live, self.dark):
                for b, e in st.bucket.items():
                    if e / st.odo[b[0]].finest >= WORD:
                        self.saturated = True

        # ---- a settle that names tokens ends the derivation
        def settle(self, t, i, totals, final=False):
            l = self.live.leases.get(i)
            if l is not None and 'tokens' in totals and not l['closed'] and not l['diverted'] and \
                    self.peek(t) < l['exp'] + l['ttl'] and not {'tokens', 'all'} & l['final']:
                l['derived'] = False
            return super().settle(t, i, totals, final)

        def peek(self, t):
            return max(self.seen, t + self.offset)

        def table(self, doc, t=0):
            self.table_version = doc['version']
            super().table(doc, t)
    return Gate


# ------------------------------------------------------------------------------------------------ random scenarios

KEYS = {'consumer': 'abcd', 'tier': ['gold', 'iron', 'go'], 'pool': 'pq', 'model': ['m1', 'm2', 'm10'], 'service': 'xy'}
CAPACITIES = [0, 1, 2, 3, 4, 4, 5, 5, 7, 8, 10, 10, 12, 20, 64, 100, 999983, 10**12 - 1, 10**12]
REFILLS = [0, 1, 1, 1, 2, 2, 3, 5, 7, 10, 100, 999979, 10**9]
PERS = [1, 3, 7, 100, 1000, 1000, 1000, 1500, 7000, 60000, 60000, 3600000, 86400000, 366 * 86400000]
LIMITS = [0, 2, 3, 4, 4, 5, 5, 6, 8, 10, 10, 12, 20, 50, 10**12]
TTLS = [1, 10, 100, 1000, 1000, 5000, 60000, 60000, 3600000]
AMOUNT_UNITS = ['input_tokens', 'output_tokens', 'tokens', 'images']
ALL_UNITS = ['cost', 'requests'] + AMOUNT_UNITS
TYPES = ['token_bucket', 'concurrency', 'request_cap', 'pressure', 'quota']


class Maker:
    def __init__(self, rng):
        self.rng, self.lines = rng, []
        self.kinds = {f'r{i}': rng.choice(['token_bucket'] * 4 + ['concurrency'] * 3 + TYPES + ['pressure', 'quota']) for i in range(8)}
        self.kinds.update({f'r{i}': rng.choice(['token_bucket', 'concurrency', 'quota']) for i in range(8, 25)})

    def bucket_numbers(self, some=False):
        r = self.rng
        while True:
            n = {'capacity': r.choice(CAPACITIES), 'refill': r.choice(REFILLS), 'per': r.choice(PERS)}
            if n['refill'] <= NS * n['per']:
                break
        if some and r.random() < .5:
            return {'capacity': n['capacity']}
        return n

    def numbers(self, kind, some=False):
        r = self.rng
        if kind == 'token_bucket':
            return self.bucket_numbers(some)
        if kind == 'concurrency':
            n = {'limit': r.choice(LIMITS), 'lease_ttl': r.choice(TTLS)}
            if r.random() < .3:
                n['fraction'] = F(r.choice(['0.5', '0.1', '0.333', '0.999999999999999999', '1', '0.34']))
            if some and r.random() < .5:
                del n['lease_ttl']
            return n
        if kind == 'pressure':
            n = {} if some else {r.choice(['gt', 'gte', 'lt', 'lte']): F(r.choice(['0', '0.5', '0.9', '0.333333333', '2', '0.900000000000000001']))}
            if some or r.random() < .3:
                n['max_age'] = r.choice([1, 100, 15000, 20000])
            return n
        return {'limit': r.choice(LIMITS)}

    def match(self, most=2):
        r, m = self.rng, {}
        for k in r.sample(sorted(KEYS), r.randint(0, most)):
            v = [r.choice(KEYS[k]) for _ in range(r.randint(1, 2))]
            x = r.random()
            m[k] = '*' if x < .3 else v[0][:1] + '*' if x < .4 else v[0] if x < .7 or len(set(v)) == 1 else sorted(set(v))
        if r.random() < .2:
            k = r.choice(sorted(KEYS))
            m['not'] = {k: r.choice(KEYS[k])} if r.random() < .9 else {}
        return m

    def rule(self, name):
        r, kind = self.rng, self.kinds[name]
        rule = {'id': name, 'type': kind, **self.numbers(kind)}
        match = self.match() if r.random() < .5 else {}
        if match:                               # one content, one way to write it
            rule['match'] = match
        if r.random() < .6:
            rule['partition_by'] = r.sample(['consumer', 'consumer', 'model', 'tier', 'pool'][:3 if r.random() < .7 else 5], 1)
            if r.random() < .2 and 'service' not in rule['partition_by']:
                rule['partition_by'].append('service')
        if r.random() < .5:
            rule['unit'] = r.choice(ALL_UNITS)
        if r.random() < .2:
            rule['mode'] = 'shadow'
        if kind == 'token_bucket':
            if r.random() < .2:
                rule['charge'] = 'completion'
            if r.random() < .3:
                rule['per_replica'] = True
        if kind in ('token_bucket', 'quota') and r.random() < .3:
            rule['settle'] = 'exact'
        if kind == 'concurrency' and r.random() < .3:
            rule['per_replica'] = True
        if kind in ('token_bucket', 'concurrency', 'pressure') and r.random() < .2:
            rule['scope_by'] = 'service'
        if kind == 'pressure':
            rule['signal'] = r.choice(['load', 'kv'])
        if kind == 'quota':
            rule['window'] = r.choice(['day', 'month'])
        if kind in ('token_bucket', 'concurrency', 'quota') and r.random() < .2 and 'mode' not in rule:
            rule['max_partitions'] = r.randint(1, 3)
        over = []
        for _ in range(r.randint(0, 2) if r.random() < .4 else 0):
            when = self.match()
            if all(when != x['when'] for x in over):
                over.append({'when': when, 'off': True} if r.random() < .2 else {'when': when, **self.fitting(rule)})
        if over:
            rule['overrides'] = over
        return rule

    def fitting(self, rule):
        """numbers for an override or entry that stay within the rate bound whatever is overlaid"""
        while True:
            n = self.numbers(rule['type'], True)
            both = {**rule, **n}
            if rule['type'] != 'token_bucket' or both['refill'] <= NS * both['per']:
                return n

    def policy(self, version):
        r = self.rng
        p = {'version': version, 'rules': [self.rule(f'r{i}') for i in sorted(r.sample(range(8), r.randint(1, 5)))]}
        if r.random() < .03:
            p['rules'] = [{k: v for k, v in self.rule(f'r{i}').items() if k not in ('match', 'partition_by', 'unit', 'mode')} for i in range(8, 25)]
        if r.random() < .3:
            p['unmatched'] = 'allow'
        if r.random() < .4:
            p['max_clock_skew'] = r.choice([1, 50, 10000, 60000])
        if r.random() < .15:
            p['shard_by'] = 'pool'
        return p

    def changed(self, p, version):
        r, p = self.rng, copy.deepcopy(p)
        p['version'] = version
        x = r.random()
        if x < .15 and len(p['rules']) > 1:
            p['rules'].pop(r.randrange(len(p['rules'])))
        elif x < .3:
            free = [f'r{i}' for i in range(8) if all(q['id'] != f'r{i}' for q in p['rules'])]
            if free:
                p['rules'].insert(r.randint(0, len(p['rules'])), self.rule(r.choice(free)))
        elif x < .4:
            i = r.randrange(len(p['rules']))
            p['rules'][i] = self.rule(p['rules'][i]['id'])
        elif x < .9:
            rule = r.choice(p['rules'])
            while True:
                n = self.numbers(rule['type'], True)
                each = [{**rule, **n}] + [{**rule, **n, **o} for o in rule.get('overrides', [])]
                if rule['type'] != 'token_bucket' or all(q['refill'] <= NS * q['per'] for q in each):
                    break
            rule.update(n)
        else:
            p['max_clock_skew'] = r.choice([1, 50, 10000, 60000])
        return p


# ------------------------------------------------------------------------------------------------ lines for the driver

def write_match(out, m):
    for k, v in m.items():
        if k != 'not':
            out.append(' '.join(['match', k] + (v if isinstance(v, list) else [v])))
    if 'not' in m:
        out.append('not')
        for k, v in m['not'].items():
            out.append(' '.join(['unless', k] + (v if isinstance(v, list) else [v])))


def write_numbers(out, n):
    for k in ('capacity', 'refill', 'limit'):
        if k in n: out.append(f'number {k} {n[k]}')
    for k in ('per', 'lease_ttl', 'max_age'):
        if k in n: out.append(f'number {k} {n[k] * NS}')
    if 'fraction' in n:
        out.append(f"number fraction {int(n['fraction'] * 10**18)}")
    for k in ('gt', 'gte', 'lt', 'lte'):
        if k in n: out.append(f'number {k} {n[k].numerator // n[k].denominator} {int(n[k] % 1 * 10**18)}')


def write_policy(out, p):
    out.append(f"policy {p['version']} {int(p.get('unmatched') == 'allow')} {p.get('max_clock_skew', 0) * NS} {p.get('shard_by', '-')}")
    for r in p['rules']:
        kind = r['type']
        scope = r.get('scope_by', 'model') if kind == 'pressure' or r.get('per_replica') else '-'
        part = r.get('partition_by', [])
        out.append(' '.join(map(str, ['rule', r['id'], TYPES.index(kind), ALL_UNITS.index(r.get('unit', 'cost')), int(r.get('mode') == 'shadow'),
                   int(r.get('charge') == 'completion'), int(r.get('settle') == 'exact'), int(r.get('per_replica', False)), scope,
                   {'day': 1, 'month': 2}.get(r.get('window'), 0), r.get('signal', '-'), r.get('max_partitions', 0), len(part)] + part)))
        write_numbers(out, r)
        write_match(out, r.get('match', {}))
        for o in r.get('overrides', []):
            out.append(f"override {int('off' not in o)}")
            write_numbers(out, o)
            write_match(out, o['when'])


def durations(p):
    """the reference model's documents write durations as text"""
    p = copy.deepcopy(p)
    def walk(x):
        for k, v in x.items():
            if k in ('per', 'lease_ttl', 'max_age', 'max_clock_skew') and isinstance(v, int):
                x[k] = f'{v}ms'
    walk(p)
    for r in p.get('rules', []):
        walk(r)
        for o in r.get('overrides', []): walk(o)
    for e in p.get('entries', {}).values():
        if isinstance(e, dict): walk(e)
    return p


# ------------------------------------------------------------------------------------------------ one scenario

class Scenario:
    def __init__(self, ref, gate_class, rng):
        self.ref, self.rng, self.maker = ref, rng, Maker(rng)
        self.lines, self.checks = [], []
        self.t = rng.choice([0, 5, 1772323200000 - rng.randint(0, 20000), 1767225600000 - rng.randint(0, 3), rng.randint(0, 4 * 10**12)])
        self.policies = [self.maker.policy('v1')]
        self.gate = gate_class(durations(self.policies[0]))
        self.leases, self.last_wait, self.tables, self.number = [], None, {}, 1
        write_policy(self.lines, self.policies[0])
        self.op('start', 0, ('exact', 'done'))

    def op(self, words, t, check):
        head, _, tail = words.partition(' ')
        self.lines.append(f'{head} {t * NS} {t * NS} {tail}'.rstrip())
        self.checks.append((len(self.lines), check))

    def step(self):
        r, x = self.rng, self.rng.random()
        if x < .45: pass
        elif x < .6: self.t += r.randint(1, 3)
        elif x < .75: self.t += r.choice([10, 100, 250, 333, 500, 1000])
        elif x < .78: self.t += r.randint(1, 60000)
        elif x < .84 and self.last_wait and self.last_wait < 10**11: self.t += max(0, self.last_wait - r.randint(0, 1)); self.last_wait = None
        elif x < .9 and self.leases: self.t = max(self.t, self.end(r.choice(self.leases[-3:])) - r.randint(-1, 1))
        elif x < .93: self.t += r.choice([15000, 14999, 60000, 3600000] if r.random() < .7 else [86400000, 31 * 86400000])
        elif x < .97: self.t = max(0, self.t - r.randint(1, 12))
        elif x < .99: self.t = max(0, self.t - r.choice([9999, 10000, 10001, 60001, 86400000]))

    def end(self, lease):
        l = self.gate.live.leases.get(lease)
        return 0 if l is None else l['exp'] + self.rng.choice([0, l['ttl']]) - self.gate.offset

    def descriptors(self, full=False):
        r = self.rng
        return {k: r.choice(KEYS[k]) for k in KEYS if full or r.random() < .95}

    def amount(self):
        r = self.rng
        x = r.random()
        if x < .75: return r.randint(1, 4)
        if x < .85: return r.randint(1, 12)
        return max(1, min(10**12, r.choice(CAPACITIES) + r.randint(-1, 1)))

    def amounts(self):
        often = self.rng.choice([.5, .9, 1])
        return {u: 0 if self.rng.random() < .15 else self.amount() for u in AMOUNT_UNITS if self.rng.random() < often}

    def admit(self):
        r, g = self.rng, self.gate
        d, cost, amounts = self.descriptors(), self.amount(), self.amounts()
        attempt = f'try{r.randint(0, 3)}' if r.random() < .15 else None
        if attempt and attempt in g.attempts and r.random() < .8:
            content = g.attempts[attempt]['content']
            d, cost, amounts = dict(content[0]), content[1], dict(content[2])
        if r.random() < .02: cost = r.choice([0, 10**12 + 1])
        g.reset()
        out = g.admit(self.t, d, cost, amounts, attempt)
        words = ['admit', cost, attempt or '-', len(d)] + [w for k, v in d.items() for w in (k, v)]
        words += [len(amounts)] + [w for u, v in amounts.items() for w in (ALL_UNITS.index(u), v)]
        if 'error' in out:
            code = {'invalid_cost': -2, 'invalid_attempt': -4}[out['error']]
            return self.op(' '.join(map(str, words)), self.t, ('exact', f'error {code}'))
        if out.get('lease'): self.leases.append(out['lease'])
        wait = out['retry_after_ms']
        self.last_wait = wait or self.last_wait
        span = None
        if wait is not None:
            known = [g.ranges[i] for i in out['rules'] if i in g.ranges]
            span = (max(a for a, _ in known), max(b for _, b in known))
        text = [f"lease {out.get('lease') or 0} version {out['version']} table {out['table'] or '-'} rules"] + out['rules'] + ['shadow'] + out['shadow']
        self.op(' '.join(map(str, words)), self.t, ('admit', out['reason'], wait or 0, span, ' '.join(text), g.border, g.saturated))

    def on_lease(self, name):
        r, g = self.rng, self.gate
        if not self.leases and r.random() < .9: return self.admit()
        lease = r.choice(self.leases[-4:] if r.random() < .7 else self.leases) if self.leases and r.random() < .98 else 999999
        g.reset()
        if name == 'settle':
            totals = {u: 0 if r.random() < .1 else self.amount() if r.random() < .1 else r.randint(1, 9) for u in ALL_UNITS if u != 'requests' and r.random() < .4}
            everything = r.random() < .2
            final = True if everything else [u for u in totals if r.random() < .3]
            out = g.settle(self.t, lease, totals, final)
            words = [name, lease, int(everything), len(totals)]
            words += [w for u, v in totals.items() for w in (ALL_UNITS.index(u), v, int(not everything and u in final))]
        else:
            words, out = [name, lease], getattr(g, name)(self.t, lease)
        self.op(' '.join(map(str, words)), self.t, ('state', out, g.saturated))

    def signal(self):
        r = self.rng
        scope = r.choice(KEYS['model'] * 2 + ['x'])
        replica, name = r.choice('123'), r.choice(['healthy', 'healthy', 'load', 'kv'])
        value = r.choice(['1', '1', '1', '0', 'nan']) if name == 'healthy' else r.choice(['0', '0.5', '0.9', '1.8', '0.333333333', '0.85', '0.95', 'nan', '3', '-1'])
        self.gate.signal(self.t, scope, replica, name, value)
        self.op(f'signal {scope} {replica} {name} {value}', self.t, ('exact', 'done'))

    def publish(self):
        r = self.rng
        x = r.random()
        if x < .1: p = r.choice(self.policies)
        elif x < .2: p = self.maker.changed(r.choice(self.policies), r.choice(self.policies)['version'])
        else:
            self.number += 1
            p = self.maker.changed(r.choice(self.policies[-3:]), f'v{self.number}')
        # a limit table in force must go on fitting its rule; the reference model does not check that
        for rule in p['rules']:
            for e in self.tables.get(rule['id'], {}).values():
                both = {**rule, **(e if isinstance(e, dict) else {})}
                if rule['type'] == 'token_bucket' and both['refill'] > NS * both['per']: return
        error = self.gate.publish(durations(p), self.t)
        if error is None: self.policies.append(p)
        write_policy(self.lines, p)
        self.op('publish', self.t, ('exact', f"status {0 if error is None else {'version_conflict': -201}[error]}"))

    def rollback(self):
        version = self.rng.choice(self.policies)['version'] if self.rng.random() < .9 else 'v999'
        p = next((h for h in self.gate.history if h['version'] == version), None)
        for rule in p['rules'] if p else []:
            for e in self.tables.get(rule['id'], {}).values():
                both = {**rule['n'], **(e if isinstance(e, dict) else {})}
                if rule['type'] == 'token_bucket' and both['refill'] > NS * both['per']: return
        error = self.gate.rollback(version, self.t)
        self.op(f'rollback {version}', self.t, ('exact', f"status {0 if error is None else -202}"))

    def table(self):
        r, rules = self.rng, self.gate.policy['rules']
        rule = r.choice(rules)
        entries = {}
        for v in r.sample(KEYS['consumer'], r.randint(1, 3)):
            entries[v] = 'off' if r.random() < .15 else self.maker.fitting({'type': rule['type'], **rule['n']})
        patch, full = r.random() < .4, entries
        if patch:
            full = {**self.tables.get(rule['id'], {}), **entries}
        self.number += 1
        doc = {'version': f't{self.number}', 'rule': rule['id'], 'by': 'consumer', 'entries': full}
        self.gate.table(durations(doc), self.t)
        self.tables[rule['id']] = full
        self.lines.append(f"table {doc['version']} {rule['id']} consumer")
        for v, n in entries.items():
            self.lines.append(f'entry {v} {int(n != "off")}')
            if n != 'off': write_numbers(self.lines, n)
        self.op(f'put {int(patch)}', self.t, ('exact', 'status 0'))

    def read(self):
        g, d = self.gate, self.descriptors(True)
        rules = [r for r in g.policy['rules'] if r['type'] in ('token_bucket', 'concurrency', 'quota') and g.pick(r, d)[0] is not None]
        if not rules: return
        r = self.rng.choice(rules)
        now, st = g.clock(self.t), g.dark if r['shadow'] else g.live
        n, name = g.pick(r, d)
        if r['type'] == 'token_bucket':
            cid, o = g.odometer(st, r, n, name, d, now)
            level = o.v(now) - o.empty(now, st.bucket.get((cid, g.key(r, d))))
            low, exact, high = (math.floor(level + x) for x in (-o.tolerance(), 0, o.tolerance()))
        else:
            low = exact = high = g.used(st, r, d, self.t) if r['type'] == 'quota' else g.held(st, r, d, now)
        words = ['read', r['id'], len(d)] + [w for k, v in d.items() for w in (k, v)]
        self.op(' '.join(map(str, words)), self.t, ('level', low, exact, high, g.saturated))

    def operate(self):
        self.step()
        x = self.rng.random()
        if x < .5: self.admit()
        elif x < .6: self.on_lease('release')
        elif x < .65: self.on_lease('renew')
        elif x < .75: self.on_lease('settle')
        elif x < .78: self.on_lease('divert')
        elif x < .84: self.signal()
        elif x < .88: self.publish()
        elif x < .9: self.rollback()
        elif x < .92: self.table()
        else: self.read()


def judge(check, got):
    """'same', 'border' (either answer is right, the scenario may go on), 'parted' (ends) or 'different'"""
    kind = check[0]
    if kind == 'exact':
        return 'same' if got == check[1] else 'different'
    if kind == 'state':
        return 'same' if got == check[1] else 'parted' if check[2] else 'different'
    if kind == 'level':
        value = int(got.split()[1]) if got.startswith('level') else None
        _, low, exact, high, saturated = check
        if value == exact: return 'same'
        return 'border' if value is not None and low <= value <= high else 'parted' if saturated else 'different'
    _, reason, wait, span, text, border, saturated = check
    words = got.split(' ', 2)
    if len(words) == 3 and words[0] == reason and words[2] == text:
        if int(words[1]) == wait: return 'same'
        if span and span[0] <= int(words[1]) <= span[1]: return 'border'
    return 'parted' if border or saturated else 'different'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('driver')
    parser.add_argument('refmodel', nargs='?', default=os.environ.get('ADMIT_REFMODEL'))
    parser.add_argument('--operations', type=int, default=int(os.environ.get('ADMIT_COMPARE_OPERATIONS', 200000)))
    parser.add_argument('--seconds', type=float, default=float(os.environ.get('ADMIT_COMPARE_SECONDS', 0)))
    parser.add_argument('--seed', type=int, default=1)
    a = parser.parse_args()
    path = os.environ.get('ADMIT_REFMODEL') or a.refmodel
    if not path or not os.path.exists(path):
        print('skipped: the reference model in Python is not present; name it with ADMIT_REFMODEL')
        return 77
    spec = importlib.util.spec_from_file_location('refmodel', path)
    ref = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(ref)
    gate_class = patch(ref)
    driver = subprocess.Popen([a.driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    total = borders = parted = 0
    words, begun, seed = {}, time.monotonic(), a.seed
    while total < a.operations and not (a.seconds and time.monotonic() - begun > a.seconds):
        rng = random.Random(seed)
        s = Scenario(ref, gate_class, rng)
        for _ in range(rng.randint(20, 120)):
            s.operate()
        driver.stdin.write('\n'.join(s.lines) + '\n\n')
        driver.stdin.flush()
        answers = [driver.stdout.readline().rstrip('\n') for _ in s.checks]
        for i, (line, check) in enumerate(s.checks):
            total += 1
            word = answers[i].split(' ')[0]
            words[word] = words.get(word, 0) + 1
            verdict = judge(check, answers[i])
            if verdict == 'border': borders += 1
            if verdict == 'parted':
                parted += 1
                break
            if verdict == 'different':
                print('\n'.join(s.lines[:line]))
                print(f'seed {seed}: expected {check!r}\n got {answers[i]!r}')
                return 1
        seed += 1
    print(' '.join(f'{k}={v}' for k, v in sorted(words.items())))
    missing = [w for w in ('allowed rate_exceeded concurrency_exceeded pressure quota_exceeded unsatisfiable cost_above_cap no_policy missing_descriptor '
               'missing_amount policy_too_wide key_space_full released already late unknown renewed lost settled diverted').split() if w not in words]
    print(f'{total} operations, 0 differences, {borders} on a boundary, {parted} scenarios parted at one, seeds {a.seed} to {seed - 1}')
    if missing:
        print('never reached: ' + ' '.join(missing))
    return 1 if missing and a.operations >= 100000 and not a.seconds else 0


if __name__ == '__main__':
    sys.exit(main())
