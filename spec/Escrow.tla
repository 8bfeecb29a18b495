--------------------------------- MODULE Escrow --------------------------------
(* One budget for tenants that ask, pause, are removed, and come back.  Who has   *)
(* asked within Release ticks is present, and has a share: its guarantee, and     *)
(* then by weight up to its cap, as if water rose in vessels.  An ask beyond the  *)
(* share is for a part of a unit, and for what nobody's share or use needs.       *)
(*                                                                                *)
(* Calls hold units of a tenant's share, grow, and end with less or more than     *)
(* they hold, also after their window, and after their tenant was removed.  What  *)
(* a call has cost beyond is a debt of its tenant, which its share pays first.    *)
(*                                                                                *)
(* The level is not computed here as the engine does, but is the one at which all *)
(* stand where they say that they do.  What is owed to who asks for much at once  *)
(* (T4) is in the explorer's model alone.  A window lasts as long as it likes.    *)
EXTENDS Integers, FiniteSets
CONSTANTS N, Limit, Cost,
          Weight,     \* of tenant 0; the others have 1
          Guarantee,  \* of tenant 1
          Cap,        \* of tenant 2
          Release,    \* ticks until a tenant that has stopped is absent
          Evicts,     \* tenants are removed, and others take their places
          Others,     \* guard: shares of others are kept
          Own,        \* guard: a borrower's own share is not lent to it
          Kept,       \* guard: what the removed have used stays used
          Leave,      \* guard: a tenant that has stopped becomes absent
          Calls,      \* that may hold units at once; call i is of tenant i % N
          Over,       \* units that a call may cost beyond what it holds
          Debt,       \* guard: what a call cost beyond is owed
          First,      \* guard: a tenant pays before it is admitted
          Window,     \* guard: a hold gives back into its own window
          Past,       \* guard: a hold that grows in a later window keeps none of the one before
          Once,       \* guard: a hold is settled once
          Same        \* guard: the hold of a removed tenant gives nothing to the next
VARIABLES adm,        \* held or committed in the window, with what calls cost beyond
          by,         \* of it, by each
          used, age, came, gone,
          debt,       \* of each: what its calls have cost beyond, and is not paid
          lost,       \* the same of those that were removed
          call,
          robbed,     \* an ask took of what was left of another's share
          owing,      \* one that still owed units was admitted
          silent      \* all but tenant 0 are silent from now on
vars == <<adm, by, used, age, came, gone, debt, lost, call, robbed, owing, silent>>

T == 0..(N - 1)
C == 0..(Calls - 1)
Of(i) == i % N
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(a, b) == Max(0, a - b)
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

Promise(t) == IF t = 1 THEN Guarantee ELSE 0
Most(t) == IF t = 2 THEN Min(Cap, Limit) ELSE Limit
Slope(t) == IF t = 0 THEN Weight ELSE 1

Zeros == [t \in T |-> 0]
\* now: of the units, those that are of this window.
Idle == [units |-> 0, past |-> 0, now |-> 0, old |-> FALSE, removed |-> FALSE, again |-> FALSE]
Init == /\ adm = 0 /\ by = Zeros /\ used = Zeros /\ age = [t \in T |-> Release]
        /\ came = [t \in T |-> FALSE] /\ gone = 0 /\ debt = Zeros /\ lost = 0
        /\ call = [i \in C |-> Idle] /\ robbed = FALSE /\ owing = FALSE
        /\ silent = FALSE

\* ---- The level, where these (S) are present, and each has used so much (u)
Rest(S, u) == Less(Limit, Sum(u, T \ S) + gone)
\* Guarantees that others have used up shrink alike.
Vessels(S, u) ==
    LET short == Sum([t \in T |-> Max(Promise(t), u[t])], S) > Rest(S, u) IN
    [base |-> [t \in T |-> IF short THEN 0 ELSE Promise(t)],
     width |-> [t \in T |-> IF short THEN Promise(t) ELSE Slope(t)]]
\* over: it has used more than its share; full: its share is its cap.
Stands == {"under", "over", "full"}
\* Heights are in units times the widths of those under the level.
Poured(S, u, v, at) ==
    LET under == {t \in S : at[t] = "under"}
        widths == Sum(v.width, under)
        taken == Sum([t \in S |-> IF at[t] = "under" THEN v.base[t]
                                  ELSE IF at[t] = "over" THEN u[t] ELSE Max(Most(t), u[t])], S)
        water == Less(Rest(S, u), taken)
    IN [at |-> at, widths |-> widths,
        height |-> [t \in S |-> v.base[t] * widths + v.width[t] * water]]
StandsThere(u, p, t) ==
    LET has == u[t] * p.widths
        most == Max(Most(t), u[t]) * p.widths IN
    CASE p.at[t] = "under" -> has <= p.height[t] /\ p.height[t] <= most
      [] p.at[t] = "over" -> p.height[t] < has
      [] p.at[t] = "full" -> most <= p.height[t]
IsLevel(S, u, p) == IF p.widths > 0 THEN \A t \in S : StandsThere(u, p, t)
                    ELSE \A t \in S : p.at[t] = "full"
\* <<the share of each, whether a part of a unit is beyond it>>
Shares(S, u) ==
    LET v == Vessels(S, u)
        p == CHOOSE x \in {Poured(S, u, v, at) : at \in [S -> Stands]} : IsLevel(S, u, x) IN
    [t \in T |-> IF t \notin S THEN <<0, FALSE>>
                 ELSE IF p.at[t] = "full" THEN <<Most(t), FALSE>>
                 ELSE LET whole == p.height[t] \div p.widths IN
                      <<Min(Most(t), whole), p.height[t] % p.widths > 0 /\ whole < Most(t)>>]
Present == {t \in T : age[t] < Release}
Left(S, u) == LET sh == Shares(S, u) IN [t \in T |-> Less(sh[t][1], u[t])]

\* ---- Asking
\* These have been used (u).
Admits(t, c, u) ==
    LET S == Present \cup {t}
        sh == Shares(S, u)
        mine == sh[t][1]
        all == Sum(u, T) + gone
        others == Sum([o \in T |-> Max(sh[o][1], u[o])], T \ {t}) + gone
        mayLend == u[t] < mine \/ (u[t] = mine /\ sh[t][2])
        lent == u[t] + c <= Min(Less(Limit, others), Most(t))
        left == Less(Limit, all)
        reserve == Sum([o \in T |-> Less(sh[o][1], u[o])], S \ {t})
    IN \/ c <= left /\ u[t] + c <= mine
       \/ c <= left /\ mayLend /\ lent
       \/ ~Others /\ c <= left
       \/ ~Own /\ c <= left /\ u[t] + c - mine <= Less(left, reserve)
\* So much of a debt, where these (S) are present.
Pays(t, S, u, d) == IF d = 0 THEN 0
                    ELSE Min(d, Min(Less(Limit, Sum(u, T) + gone), Less(Shares(S, u)[t][1], u[t])))
\* What comes of it: a debt is paid first.
Asked(t, c) ==
    LET owes == IF First THEN debt[t] ELSE 0
        paid == Pays(t, Present \cup {t}, used, owes)
        u == [used EXCEPT ![t] = @ + paid]
        ok == paid = owes /\ Admits(t, c, u) IN
    [ok |-> ok, used |-> [u EXCEPT ![t] = @ + IF ok THEN c ELSE 0],
     debt |-> [debt EXCEPT ![t] = @ - paid]]
Seen(t) == /\ age' = [age EXCEPT ![t] = 0]
           /\ came' = [came EXCEPT ![t] = @ \/ age[t] >= Release]
\* A tenant that is present takes nothing of what is left of another's share.
Robs(t, u) == t \in Present /\ LET before == Left(Present, used)
                                   after == Left(Present, u) IN
                               \E o \in T \ {t} : after[o] < before[o]
Takes(t, c, it) == /\ used' = it.used /\ debt' = it.debt
                   /\ adm' = adm + IF it.ok THEN c ELSE 0
                   /\ by' = [by EXCEPT ![t] = @ + IF it.ok THEN c ELSE 0]
                   /\ owing' = (owing \/ (it.ok /\ it.debt[t] > 0))
Asks(t, c, it) == /\ ~silent /\ Seen(t) /\ Takes(t, c, it) /\ UNCHANGED <<gone, lost, silent>>
                  /\ robbed' = (robbed \/ Robs(t, used'))
Ask(t, c) == Asks(t, c, Asked(t, c)) /\ UNCHANGED call

\* ---- Calls that hold units
Hold(i, cost) ==
    LET t == Of(i)
        c == Min(cost, Most(t))
        it == Asked(t, c) IN
    /\ call[i].units = 0 /\ Asks(t, c, it)
    /\ call' = IF it.ok THEN [call EXCEPT ![i] = [Idle EXCEPT !.units = c, !.now = c]] ELSE call
\* A hold outlives one window, in this world.
Grown(h) == [h EXCEPT !.units = IF h.old /\ Past THEN 1 ELSE @ + 1,
                      !.past = IF h.old /\ Past THEN h.units ELSE @,
                      !.now = @ + 1, !.old = FALSE]
Grow(i) ==
    LET h == call[i]
        it == Asked(Of(i), 1) IN
    /\ h.units > 0 /\ ~h.removed /\ ~(h.old /\ h.past > 0) /\ Asks(Of(i), 1, it)
    /\ call' = IF it.ok THEN [call EXCEPT ![i] = Grown(h)] ELSE call
\* It has cost so much.
End(i, cost) ==
    LET h == call[i]
        t == Of(i)
        back == Min(h.units, Less(h.units + h.past, cost))
        over == Less(cost, h.units + h.past)
        open == ~h.old \/ ~Window
        apart == h.removed /\ Same
        given == IF open /\ ~apart /\ used[t] >= back THEN [used EXCEPT ![t] = @ - back] ELSE used
        owes == debt[t] + IF open /\ ~h.removed /\ Debt THEN over ELSE 0
        paid == IF t \in Present /\ owes > debt[t] THEN Pays(t, Present, given, owes) ELSE 0
        beyond == IF h.old \/ h.again THEN 0 ELSE over
        real == Min(back, h.now)
    IN /\ ~silent /\ h.units > 0
       /\ used' = [given EXCEPT ![t] = @ + paid]
       /\ gone' = gone - IF open /\ apart THEN back ELSE 0
       /\ debt' = [debt EXCEPT ![t] = owes - paid]
       /\ adm' = adm + beyond - real
       /\ by' = [by EXCEPT ![t] = @ + IF h.removed THEN 0 ELSE beyond - real]
       /\ lost' = lost + IF h.removed THEN beyond ELSE 0
       /\ call' = [call EXCEPT ![i] = IF Once THEN Idle ELSE [@ EXCEPT !.again = TRUE, !.now = 0]]
       /\ robbed' = (robbed \/ (~h.removed /\ Robs(t, used')))
       /\ UNCHANGED <<age, came, owing, silent>>

\* ---- Time, and tenants that go
Older(S) == /\ age' = [t \in T |-> IF t \in S /\ (Leave \/ age[t] + 1 < Release)
                                   THEN Min(age[t] + 1, Release) ELSE age[t]]
            /\ came' = [t \in T |-> came[t] /\ age'[t] < Release]
Tick == /\ ~silent /\ Older(T)
        /\ UNCHANGED <<adm, by, used, gone, debt, lost, call, robbed, owing, silent>>
Turn == /\ ~silent /\ adm' = 0 /\ by' = Zeros /\ used' = Zeros /\ gone' = 0
        /\ debt' = Zeros /\ lost' = 0 /\ came' = [t \in T |-> FALSE]
        /\ call' = [i \in C |-> [call[i] EXCEPT !.old = call[i].units > 0, !.now = 0]]
        /\ UNCHANGED <<age, robbed, owing, silent>>
Evict(t) == /\ Evicts /\ ~silent /\ UNCHANGED <<adm, robbed, owing, silent>>
            /\ gone' = gone + IF Kept THEN used[t] ELSE 0
            /\ used' = [used EXCEPT ![t] = 0] /\ age' = [age EXCEPT ![t] = Release]
            /\ came' = [came EXCEPT ![t] = FALSE]
            /\ by' = [by EXCEPT ![t] = 0] /\ debt' = [debt EXCEPT ![t] = 0]
            /\ lost' = lost + debt[t]
            /\ call' = [i \in C |-> IF Of(i) = t /\ call[i].units > 0
                                    THEN [call[i] EXCEPT !.removed = TRUE] ELSE call[i]]

\* But for what is owed.
Used == adm - Sum(debt, T) - lost
\* From now on tenant 0 takes what it can, and time passes when it can take nothing.
Silence == ~silent /\ silent' = TRUE
           /\ UNCHANGED <<adm, by, used, age, came, gone, debt, lost, call, robbed, owing>>
\* One step pays, and a later one asks.
Alone == LET paid == Pays(0, Present \cup {0}, used, debt[0]) IN
         /\ silent /\ Used < Limit /\ UNCHANGED <<gone, lost, call, robbed, owing, silent>>
         /\ IF debt[0] = 0 /\ Admits(0, 1, used)
            THEN /\ Seen(0) /\ adm' = adm + 1 /\ used' = [used EXCEPT ![0] = @ + 1]
                 /\ by' = [by EXCEPT ![0] = @ + 1] /\ UNCHANGED debt
            ELSE IF debt[0] > 0 /\ paid > 0
            THEN /\ Seen(0) /\ used' = [used EXCEPT ![0] = @ + paid]
                 /\ debt' = [debt EXCEPT ![0] = @ - paid] /\ UNCHANGED <<adm, by>>
            ELSE Older(T \ {0}) /\ UNCHANGED <<adm, by, used, debt>>

Next == \/ Tick \/ Turn \/ \E t \in T \ {0} : Evict(t)
        \/ \E t \in T, c \in 1..Cost : Ask(t, c)
        \/ \E i \in C : \/ Grow(i) \/ \E c \in 1..Cost : Hold(i, c)
                        \/ \E c \in 0..(call[i].units + call[i].past + Over) : End(i, c)
Spec == Init /\ [][Next]_vars

Within == Used <= Limit
\* What is reserved is there.
Reserved == Used + Sum(Left(Present, used), Present) <= Max(Limit, Used)
\* A tenant that was there from the beginning of the window has its guarantee.
Guaranteed == N > 1 /\ 1 \in Present /\ ~came[1] /\ used[1] < Guarantee
                  => Used + Guarantee - used[1] <= Limit
NotRobbed == ~robbed
NotOwing == ~owing
\* Each unit of the window is where it is said to be.
Booked == Used = Sum(used, T) + gone /\ \A t \in T : by[t] = used[t] + debt[t]
\* T4: all were there from the beginning of the window, no call runs, and each has used its share.
IsOver == /\ Present = T /\ \A t \in T : ~came[t] /\ by[t] - debt[t] >= Shares(T, used)[t][1]
         /\ \A i \in C : call[i].now = 0
Running == Cost + ((Calls + N - 1) \div N) * Over
Fair == Guarantee = 0 /\ N <= 2 /\ IsOver =>
            \A i, j \in T : by[i] * Slope(j) <= by[j] * Slope(i) + Running * (Slope(i) + Slope(j))
Reached == Used < Limit                \* must be violated

\* All of it can be used by one tenant, though others were there.
FairSpec == Init /\ [][Next \/ Silence \/ Alone]_vars /\ WF_vars(Alone)
UsedUp == silent ~> Used = Limit
================================================================================
