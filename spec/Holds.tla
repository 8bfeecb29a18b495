--------------------------------- MODULE Holds ---------------------------------
(* Calls that hold units of several limits until it is known what they have cost. *)
(* A node leases units of each limit; a call takes them of all limits or of none, *)
(* at once or one limit after the other (Apart); it grows, and is settled with    *)
(* less or more than it holds.  What it has cost beyond is a debt, which is paid  *)
(* before anybody gets units.  The node may die, and another begins in its place. *)
(*                                                                                *)
(* A window turns for all limits at once.  Messages are for OnceLease: what is    *)
(* lent and given back is so at once.                                             *)
EXTENDS Integers
CONSTANTS Parts,    \* limits that each call needs: 1 or 2
          Calls,    \* that run at once
          Limit, Cost,
          Over,     \* units that a call may cost beyond what it holds
          Apart,    \* parts are taken one after the other, and kept meanwhile
          Deaths,   \* of the node
          Whole,    \* guard: what a refused call has taken goes back
          Window,   \* guard: it goes back into its own window
          Past,     \* guard: a hold that grows in a later window keeps none of the one before
          Debt,     \* guard: what a call cost beyond is owed
          First,    \* guard: a debt is paid before a call is served
          Once,     \* guard: a hold is settled once
          Dead      \* guard: what a dead node held stays used
VARIABLES lim,      \* of each limit, all of this window
          call, deaths
vars == <<lim, call, deaths>>

P == 1..Parts
C == 1..Calls
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

\* With the store, in hand, owed, committed, beyond what was held since a debt began that lasts;
\* what died with a node: in hand, and owed.
Open == [store |-> Limit, cr |-> 0, debt |-> 0, com |-> 0, exc |-> 0, lost |-> 0, gone |-> 0]
Nothing == [units |-> 0, past |-> 0, old |-> FALSE]
Idle == [is |-> "idle", part |-> [p \in P |-> Nothing]]
Init == /\ lim = [p \in P |-> Open] /\ call = [i \in C |-> Idle] /\ deaths = 0

\* ---- A limit
Settled(l) == IF l.debt = 0 /\ l.gone = 0 THEN [l EXCEPT !.exc = 0] ELSE l
Put(l, k) == LET paid == IF First THEN Min(l.debt, k) ELSE 0 IN
             Settled([l EXCEPT !.debt = @ - paid, !.cr = @ + k - paid])
Take(l, k) == [l EXCEPT !.cr = @ - k]
Owe(l, k) == LET debt == l.debt + IF Debt THEN k ELSE 0
                 paid == Min(debt, l.cr) IN
             IF k = 0 THEN l
             ELSE Settled([l EXCEPT !.com = @ + k, !.exc = @ + IF Debt THEN k ELSE 0,
                                    !.debt = debt - paid, !.cr = @ - paid])
\* A part of a call that has cost so much.
IsDead(h) == h.old /\ Window
Settle(l, h, cost) ==
    LET has == h.units + h.past
        back == IF IsDead(h) THEN 0 ELSE Min(h.units, Max(0, has - cost))
        over == IF IsDead(h) THEN 0 ELSE Max(0, cost - has)
        owing == Owe([l EXCEPT !.com = @ + IF h.old THEN 0 ELSE h.units - back], over) IN
    IF back > 0 THEN Put(owing, back) ELSE owing

Lease(p, k) == /\ lim[p].store >= k
               /\ lim' = [lim EXCEPT ![p] = Put([@ EXCEPT !.store = @ - k], k)]
               /\ UNCHANGED <<call, deaths>>
GiveBack(p) == /\ lim[p].cr > 0
               /\ lim' = [lim EXCEPT ![p].store = @ + lim[p].cr, ![p].cr = 0]
               /\ UNCHANGED <<call, deaths>>
Spend(p) == /\ lim[p].cr > 0 /\ lim' = [lim EXCEPT ![p].cr = @ - 1, ![p].com = @ + 1]
            /\ UNCHANGED <<call, deaths>>

\* ---- A call
Held(k) == [units |-> k, past |-> 0, old |-> FALSE]
Hold(i, costs) ==
    LET units == [p \in P |-> Min(costs[p], Limit)]
        has == [p \in P |-> lim[p].cr >= units[p]]
        taken == [p \in P |-> IF has[p] THEN Take(lim[p], units[p]) ELSE lim[p]] IN
    /\ ~Apart /\ call[i].is = "idle" /\ UNCHANGED deaths
    /\ IF \A p \in P : has[p]
       THEN /\ lim' = taken
            /\ call' = [call EXCEPT ![i] = [is |-> "runs", part |-> [p \in P |-> Held(units[p])]]]
       ELSE /\ lim' = IF Whole
                      THEN [p \in P |-> IF has[p] THEN Put(taken[p], units[p]) ELSE lim[p]]
                      ELSE taken
            /\ UNCHANGED call

\* The same, part by part: what is kept waits for the rest.
Kept(i) == {p \in P : call[i].part[p].units > 0}
Cancel(i) == /\ lim' = [p \in P |-> IF Whole /\ p \in Kept(i)
                                    THEN Settle(lim[p], call[i].part[p], 0) ELSE lim[p]]
             /\ call' = [call EXCEPT ![i] = Idle] /\ UNCHANGED deaths
Reserve(i, p, cost) ==
    LET k == Min(cost, Limit) IN
    /\ Apart /\ call[i].is # "runs" /\ p \notin Kept(i)
    /\ IF lim[p].cr < k THEN Cancel(i)
       ELSE /\ lim' = [lim EXCEPT ![p] = Take(@, k)] /\ UNCHANGED deaths
            /\ call' = [call EXCEPT
                          ![i] = [is |-> IF Kept(i) \cup {p} = P THEN "runs" ELSE "gathers",
                                  part |-> [@.part EXCEPT ![p] = Held(k)]]]
GiveUp(i) == call[i].is = "gathers" /\ Cancel(i)

\* A hold outlives one window, in this world.
Grow(i, p) ==
    LET h == call[i].part[p]
        joins == ~(h.old /\ Window /\ Past) IN
    /\ call[i].is = "runs" /\ ~(h.old /\ h.past > 0) /\ lim[p].cr > 0
    /\ lim' = [lim EXCEPT ![p] = Take(@, 1)]
    /\ call' = [call EXCEPT
                  ![i].part[p] = [units |-> IF joins THEN h.units + 1 ELSE 1, old |-> FALSE,
                                  past |-> IF joins THEN h.past ELSE h.past + h.units]]
    /\ UNCHANGED deaths
End(i, costs) ==
    /\ call[i].is = "runs" /\ lim' = [p \in P |-> Settle(lim[p], call[i].part[p], costs[p])]
    /\ call' = IF Once THEN [call EXCEPT ![i] = Idle] ELSE call
    /\ UNCHANGED deaths

\* ---- All
\* What is in hand, and owed, dies with its window.
Turn == /\ lim' = [p \in P |-> Open] /\ UNCHANGED deaths
        /\ call' = [i \in C |-> IF call[i].is = "idle" THEN Idle
                                ELSE [call[i] EXCEPT !.part = [p \in P |->
                                        [@[p] EXCEPT !.old = call[i].part[p].units > 0]]]]
HeldOf(p) == Sum([i \in C |-> IF call[i].part[p].old THEN 0 ELSE call[i].part[p].units], C)
\* Nothing tells what its calls have cost: at most what they held is taken as committed.
Die == /\ deaths < Deaths /\ deaths' = deaths + 1 /\ call' = [i \in C |-> Idle]
       /\ lim' = [p \in P |->
                    [lim[p] EXCEPT !.com = @ + HeldOf(p), !.lost = @ + lim[p].cr, !.cr = 0,
                                   !.gone = @ + lim[p].debt, !.debt = 0,
                                   !.store = @ + IF Dead THEN 0 ELSE HeldOf(p)]]

\* What a call may cost of each part.
Costs == [P -> 1..Cost]
Ends(i) == {c \in [P -> 0..(2 * Limit + Over)] :
              \A p \in P : c[p] <= call[i].part[p].units + call[i].part[p].past + Over}
Next == \/ Turn \/ Die
        \/ \E p \in P : GiveBack(p) \/ Spend(p) \/ \E k \in 1..Limit : Lease(p, k)
        \/ \E i \in C : \/ GiveUp(i)
                        \/ \E costs \in Costs : Hold(i, costs)
                        \/ \E costs \in Ends(i) : End(i, costs)
                        \/ \E p \in P : Grow(i, p) \/ \E k \in 1..Cost : Reserve(i, p, k)
Spec == Init /\ [][Next]_vars

\* HOLD-1, HOLD-3, and the law of holds.
Conserved == \A p \in P : lim[p].com + HeldOf(p) + lim[p].cr + lim[p].store + lim[p].lost
                              = Limit + lim[p].debt + lim[p].gone
Owing == \A p \in P : lim[p].debt = 0 \/ lim[p].cr = 0
Committed == \A p \in P : lim[p].com - lim[p].exc <= Limit
Reached == \E p \in P : lim[p].com - lim[p].exc < Limit     \* must be violated
\* A call that runs has units of every limit.
AllOf == \A i \in C : call[i].is = "runs" => Kept(i) = P
================================================================================
