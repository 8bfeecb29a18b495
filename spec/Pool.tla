---------------------------------- MODULE Pool ---------------------------------
(* One budget at a store, and nodes that claim units of it for their tenants and  *)
(* spend them by themselves.  A region is a node that the store is far from.      *)
(* Asks and answers come late, in another order, and never; asks also twice.  A   *)
(* node may crash and begin anew, and the store may forget.  In a tick of the     *)
(* store a node's clock goes on by four quarters, or by Drift less or more.       *)
(*                                                                                *)
(* A node asks for what one call costs, or only says what it has.  All numbers of *)
(* a claim are totals of a window.  Windows are told apart as this one (0), the   *)
(* one before (1), and others (2), of which nothing counts.  Tenants have the     *)
(* same weight, no guarantee, and the limit for a cap: for the rest see Escrow.   *)
EXTENDS Integers, FiniteSets
CONSTANTS N, Tenants, Limit, Cost,
          Ticks,    \* of the store, in a window
          Release,  \* ticks until a tenant that has stopped is absent
          Gives,    \* units that a node gives back in a window at most
          Drift,    \* quarters of a tick that clocks gain or lose in one
          Mail,     \* messages of a node that are under way at once
          Twice,    \* asks may come more than once
          Crashes,  \* of each node
          Forgets,  \* of the store
          Margin,   \* guard: the drift is taken off
          Quiet,    \* guard at 0: so many ticks a store that forgot grants nothing
          Store,    \* guard: the store compares what was granted with what the node had
          Total,    \* guard: an answer tells the total
          Back,     \* guard: what goes back is told as a total
          Window,   \* guard: totals of another window change nothing
          Dies,     \* guard: what is in hand is dropped with its window
          Ends,     \* guard: units end when the window may turn, not when it must have
          One,      \* guard: only the latest ask has an answer
          Fresh,    \* guard: a node that begins anew has another name
          Others,   \* guard: shares of others are kept
          Leave     \* guard: a tenant that has stopped becomes absent
VARIABLE w          \* the world: one record, as some steps are made of others

Q == 4
Nodes == 0..(N - 1)
T == 0..(Tenants - 1)
Names == Nodes \X (0..Crashes)
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(a, b) == Max(0, a - b)
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

Oldest == Max(Release, 2 * Ticks)
NoRow == [granted |-> 0, back |-> 0]
Stranger == [used |-> 0, refused |-> FALSE, age |-> Oldest]
Unborn(life) == [life |-> life, waits |-> FALSE, sent |-> 0, win |-> 2,
                 granted |-> 0, back |-> 0, taken |-> 0, end |-> 0]
Init == w = [phase |-> 0, adm |-> 0, used |-> 0, quiet |-> 0, forgets |-> 0, forgot |-> FALSE,
             row |-> [x \in Names |-> NoRow], ten |-> [t \in T |-> Stranger],
             nd |-> [n \in Nodes |-> Unborn(0)], mail |-> {}, ill |-> {}]

\* ---- The network: a set.  What there is no room for is lost.
Of(mail, n) == {m \in mail : m.n = n}
Post(mail, m) == IF m \in mail \/ Cardinality(Of(mail, m.n)) = Mail THEN mail ELSE mail \cup {m}
\* No call waits any more for what is under way: asks may still come, answers are dropped.
Outdated(mail, n) == {m \in mail : m.n # n} \cup
                     {[m EXCEPT !.latest = FALSE] : m \in {x \in Of(mail, n) : ~One \/ x.k = "ask"}}
May(v, n) == ~v.nd[n].waits /\ Cardinality(Of(v.mail, n)) < Mail

\* ---- The store: shares of those that are present, and of self
Present(v, t) == v.ten[t].age < Release
Filled(v, t, level) == Max(v.ten[t].used, Min(Limit, level))
All(v, S, level) == Sum([t \in S |-> Filled(v, t, level)], S)
\* The highest level at which all together have no more than the rest of the limit; 0, if they have
\* used more.
RECURSIVE Risen(_, _, _, _)
Risen(v, S, rest, level) == IF level = rest \/ All(v, S, level + 1) > rest THEN level
                            ELSE Risen(v, S, rest, level + 1)
Shares(v, self) ==
    LET S == {t \in T : Present(v, t)} \cup {self}
        rest == Less(Limit, Less(v.used, Sum([t \in S |-> v.ten[t].used], S)))
        level == Risen(v, S, rest, 0)
        share == Filled(v, self, level)
        part == IF Filled(v, self, level + 1) > share THEN 1 ELSE 0
        others == All(v, S, level) - share
    IN [share |-> share, ceiling |-> Min(Min(share + part, Limit), Less(rest, others))]
Left(v, t) == IF Present(v, t) THEN Less(Shares(v, t).share, v.ten[t].used) ELSE 0

\* ---- The store: one ask
Tenant(m) == m.n % Tenants
Name(m) == <<m.n, IF Fresh THEN m.life ELSE 0>>
\* What the node says that it had, and gave back, of this window.
Told(v, m) ==
    LET r == v.row[Name(m)]
        here == m.w = 0 \/ ~Window
        had == IF Store THEN IF here THEN m.had ELSE 0 ELSE r.granted
        more == Less(had, r.granted)
        back == IF here THEN m.back ELSE 0
        known == IF Back THEN r.back ELSE 0
        gone == Min(Less(Min(back, r.granted + more), known), v.ten[Tenant(m)].used + more)
    IN [v EXCEPT !.used = @ + more - gone, !.ten[Tenant(m)].used = @ + more - gone,
                 !.ten[Tenant(m)].age = IF m.present THEN 0 ELSE @,
                 !.row[Name(m)] = [granted |-> r.granted + more, back |-> r.back + gone]]
Serve(v, m) ==
    LET t == Tenant(m)
        told == Told(v, m)
        seen == IF Others THEN told
                ELSE [told EXCEPT !.ten = [o \in T |-> IF o = t THEN @[o]
                                                       ELSE [@[o] EXCEPT !.age = Oldest]]]
        had == IF ~Store THEN v.row[Name(m)].granted
               ELSE IF m.w = 0 \/ ~Window THEN m.had ELSE 0
        needs == Less(had + m.more, told.row[Name(m)].granted)
        fits == Less(Shares(seen, t).ceiling, told.ten[t].used) >= needs
        k == IF told.quiet = 0 /\ fits THEN needs ELSE 0
        granted == told.row[Name(m)].granted + k
        then == [told EXCEPT !.used = @ + k, !.ten[t].used = @ + k, !.row[Name(m)].granted = granted,
                             !.ten[t].refused = @ \/ (told.quiet = 0 /\ ~fits)]
        unasked == granted > v.row[Name(m)].granted
                   /\ granted > m.more + IF m.w = 0 THEN m.had ELSE 0
        robs == /\ ~v.forgot /\ Present(v, t)
                /\ \E o \in T \ {t} : Left(then, o) < Left(v, o)
    IN [then EXCEPT !.ill = @ \cup (IF unasked THEN {"unasked"} ELSE {})
                              \cup (IF robs THEN {"robbed"} ELSE {})]
Answer(v, m) == [m EXCEPT !.k = "answer", !.w = 0, !.had = 0, !.more = 0, !.back = 0,
                          !.present = FALSE, !.granted = v.row[Name(m)].granted,
                          !.left = Ticks - v.phase, !.quiet = v.quiet > 0]

\* ---- A node
\* Of a window that is over nothing counts but units that still last, and an ask that waits.
Tidy(d) == IF d.win = 0 \/ d.end > 0 \/ d.waits THEN d
           ELSE [d EXCEPT !.win = 2, !.granted = 0, !.back = 0, !.taken = 0]
InHand(d) == IF d.end > 0 THEN d.granted - d.back - d.taken ELSE 0
Letter(d, n, cost) == [k |-> "ask", n |-> n, life |-> d.life, latest |-> TRUE, w |-> d.win,
                       had |-> d.granted, more |-> cost, back |-> d.back, present |-> cost > 0,
                       granted |-> 0, left |-> 0, quiet |-> FALSE]
Asking(v, n) == [v EXCEPT !.nd[n].waits = TRUE, !.nd[n].sent = 0, !.mail = Outdated(@, n)]
Ask(v, n, cost) == LET a == Asking(v, n) IN
                   [a EXCEPT !.mail = Post(@, Letter(a.nd[n], n, cost))]
Stopped(d) == Tidy([d EXCEPT !.waits = FALSE, !.sent = 0])

Possible(d, m) == \/ m.quiet
                  \/ /\ m.w <= d.win
                     /\ IF m.w # d.win THEN m.granted <= Limit
                        ELSE /\ m.granted >= d.granted
                             /\ m.granted - d.back <= Max(Limit, d.granted - d.back)
Ended(d, m) ==
    LET same == m.w = d.win
        drift == IF Margin THEN Drift ELSE 0
        may == Max(0, m.left * (Q - drift) - d.sent)
        must == m.left * (Q + 2 * drift)
    IN IF Ends THEN IF same THEN Max(d.end, may) ELSE may
       ELSE IF same THEN Min(d.end, must) ELSE must
Heard(d, m) ==
    LET same == m.w = d.win
        kept == IF same THEN IF Total THEN 0 ELSE d.granted
                ELSE IF Dies THEN 0 ELSE d.granted - d.back - d.taken
    IN IF m.quiet \/ ~Possible(d, m) THEN Stopped(d)
       ELSE Stopped([d EXCEPT !.win = m.w, !.granted = m.granted + kept, !.end = Ended(d, m),
                              !.back = IF same THEN @ ELSE 0, !.taken = IF same THEN @ ELSE 0])
Born(v, n) == [v EXCEPT !.nd[n] = Unborn(@.life + 1), !.mail = Outdated(@, n)]
GivesBack(v, n) == [v EXCEPT !.nd[n].back = @ + InHand(v.nd[n])]

Asks(n) == \/ \E cost \in 1..Cost : w' = Ask(w, n, cost)
           \/ Forgets > 0 /\ w.nd[n].granted > 0 /\ w' = Ask(w, n, 0)
           \/ /\ InHand(w.nd[n]) > 0 /\ w.nd[n].back + InHand(w.nd[n]) <= Gives
              /\ w' = Ask(GivesBack(w, n), n, 0)
GiveUp(n) == /\ w.nd[n].waits
             /\ w' = [w EXCEPT !.nd[n] = Stopped(@), !.mail = Outdated(@, n)]
Spend(n) == InHand(w.nd[n]) > 0 /\ w' = [w EXCEPT !.nd[n].taken = @ + 1, !.adm = @ + 1]
Crash(n) == w.nd[n].life < Crashes /\ w' = Born(w, n)

\* ---- Messages
Lose(v, m) == [v EXCEPT !.mail = @ \ {m}]
Waits(v, m) == m.life = v.nd[m.n].life /\ (m.latest \/ ~One)
Come(m) == LET v == Serve(IF Twice THEN w ELSE Lose(w, m), m) IN
           /\ m.k = "ask"
           /\ w' = IF Waits(v, m) THEN [v EXCEPT !.mail = Post(@, Answer(v, m))] ELSE v
Hear(m) == /\ m.k = "answer" /\ w.nd[m.n].waits
           /\ w' = [Lose(w, m) EXCEPT !.nd[m.n] = Heard(@, m), !.mail = Outdated(@, m.n)]

\* ---- Time
Aged(d, quarters) == Tidy([d EXCEPT !.end = Less(@, quarters),
                                    !.sent = IF d.waits THEN Min(@ + quarters, Q * Ticks) ELSE @])
Older(x) == IF Leave \/ x.age + 1 < Release THEN [x EXCEPT !.age = Min(@ + 1, Oldest)] ELSE x
\* No answer is late by two windows.  Asks are then of another window, whichever.
Behind(d) == IF d.win = 0 THEN Tidy([d EXCEPT !.win = 1])
             ELSE Tidy([d EXCEPT !.win = 2, !.granted = 0, !.back = 0, !.taken = 0, !.end = 0])
Late(mail) == {[m EXCEPT !.w = 1] : m \in {x \in mail : x.k = "ask" \/ x.w = 0}}
\* A tenant that was refused asks when the next window begins.
Again(x) == [used |-> 0, refused |-> FALSE,
             age |-> IF x.age < Oldest /\ x.refused THEN 0 ELSE x.age]
Turned(v) == [v EXCEPT !.phase = 0, !.adm = 0, !.used = 0, !.forgot = FALSE,
                       !.row = [x \in Names |-> NoRow], !.ten = [t \in T |-> Again(@[t])],
                       !.nd = [n \in Nodes |-> Behind(@[n])], !.mail = Late(@)]
Passed(v, fast) ==
    LET older == [v EXCEPT
                    !.phase = @ + 1, !.quiet = Less(@, 1), !.ten = [t \in T |-> Older(@[t])],
                    !.nd = [n \in Nodes |->
                               Aged(@[n], IF n \in fast THEN Q + Drift ELSE Q - Drift)]]
    IN IF older.phase = Ticks THEN Turned(older) ELSE older
Tick == \E fast \in IF Drift = 0 THEN {{}} ELSE SUBSET Nodes : w' = Passed(w, fast)
Forget == /\ w.forgets < Forgets
          /\ w' = [w EXCEPT !.forgets = @ + 1, !.forgot = TRUE, !.used = 0,
                            !.row = [x \in Names |-> NoRow], !.ten = [t \in T |-> Stranger],
                            !.quiet = Min(Quiet, Ticks - w.phase)]

\* The rest is silent, and nothing is lost any more: node 0 asks for all there is.
SpendsAll(v) == [v EXCEPT !.adm = @ + InHand(v.nd[0]), !.nd[0].taken = @ + InHand(v.nd[0])]
RECURSIVE AsksAll(_, _)
AsksAll(v, i) ==
    IF i = 0 THEN v
    ELSE LET a == Asking(v, 0)
             s == Serve(a, Letter(a.nd[0], 0, 1))
         IN AsksAll(SpendsAll([s EXCEPT !.nd[0] = Heard(@, Answer(s, Letter(a.nd[0], 0, 1)))]), i - 1)
Alone(v) == LET all == AsksAll([v EXCEPT !.nd[0] = Stopped(@)], Limit) IN
            IF all.adm = v.adm THEN Passed(all, {}) ELSE all

Next == \/ Tick \/ Forget \/ w' = Alone(w)
        \/ \E n \in Nodes : (May(w, n) /\ Asks(n)) \/ GiveUp(n) \/ Spend(n) \/ Crash(n)
        \/ \E m \in w.mail : Come(m) \/ Hear(m) \/ w' = Lose(w, m)
Spec == Init /\ [][Next]_w

PerWindow == w.adm <= Limit
Granted == w.used <= Limit
Sums == /\ Sum([x \in Names |-> w.row[x].granted - w.row[x].back], Names) = w.used
        /\ Sum([t \in T |-> w.ten[t].used], T) = w.used
Good == w.ill = {}                     \* nothing unasked for; nothing of another's share
\* What comes to a node that waits for it can be true.
Believed == \A m \in w.mail : m.k = "answer" /\ m.latest => Possible(w.nd[m.n], m)
Reached == w.adm < Limit               \* must be violated

\* Whatever has happened, one node alone gets the rest of a window, in this one or the next.
RECURSIVE GetsAll(_, _)
GetsAll(v, i) == v.adm = Limit \/ (i > 0 /\ GetsAll(Alone(v), i - 1))
UsedUp == GetsAll(w, 2 * (Ticks + Release) + 2)
================================================================================
